#include "fusebook/support/closest_match.h"

#include <algorithm>
#include <numeric>

namespace fuse {
namespace {

/// Number of letters to change, insert or delete to get from a to b.
std::size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t(0));
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row.back();
}

}  // namespace

std::string nearest(const std::string& name,
                    const std::vector<std::string>& names) {
  const auto best = std::min_element(
      names.begin(), names.end(), [&](const auto& a, const auto& b) {
        return edit_distance(name, a) < edit_distance(name, b);
      });
  const bool close =
      best != names.end() && edit_distance(name, *best) <= 1 + name.size() / 3;
  return close ? *best : "";
}

}  // namespace fuse
