#include "fusebook/checkpoint/numbers_as_text.h"

#include <algorithm>
#include <charconv>
#include <system_error>

#include "fusebook/support/error.h"
#include "fusebook/support/join.h"
#include "fusebook/support/number_text.h"

namespace fuse {

std::string quoted(const std::string& text) { return "\"" + text + "\""; }

std::string list_text(const std::vector<double>& values) {
  return join(values, ", ", [](double value) { return number_text(value); });
}

double parse_number(const std::string& name, const std::string& text) {
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, value);
  if (result.ec == std::errc() && result.ptr == end) return value;
  throw Error(quoted(name) + " is " + quoted(text) + ", which is not a number");
}

std::vector<double> parse_list(const std::string& name,
                               const std::string& text) {
  std::vector<double> values;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(", ", begin), text.size());
    values.push_back(parse_number(name, text.substr(begin, end - begin)));
    begin = end + 2;
  }
  return values;
}

std::int64_t parse_count(const std::string& name, const std::string& text) {
  std::int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, value);
  if (result.ec == std::errc() && result.ptr == end && value >= 0) return value;
  throw Error(quoted(name) + " is " + quoted(text) +
              ", which is not a valid count");
}

}  // namespace fuse
