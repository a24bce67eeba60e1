#include "bench_gpu/gpu_cases.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "fusebook/support/error.h"

namespace fuse::bench {
namespace {

constexpr std::size_t most_scaled_tensors = 20;

Case case_named(const std::string& name) {
  for (const Case& known : all_cases()) {
    if (known.name == name) return known;
  }
  throw Error("unknown case '" + name + "'");
}

Case scaled(Case whole, std::int64_t scale) {
  if (scale == 1) return whole;
  const std::size_t count = std::min(whole.sizes.size(), most_scaled_tensors);
  whole.sizes.resize(count);
  for (std::int64_t& size : whole.sizes) {
    size = std::max<std::int64_t>(size / scale, 1);
  }
  return whole;
}

}  // namespace

std::vector<Case> gpu_cases(std::int64_t scale) {
  std::vector<Case> cases;
  for (const char* name :
       {"10 x 1024 x 1024", "1000 x 64", "10000 x 64", "GPT-2 small"}) {
    cases.push_back(scaled(case_named(name), scale));
  }
  cases.push_back(scaled({"1 x 2^28", {std::int64_t(1) << 28}}, scale));
  return cases;
}

std::int64_t elements_of(const Case& wanted) {
  return std::accumulate(wanted.sizes.begin(), wanted.sizes.end(),
                         std::int64_t(0));
}

}  // namespace fuse::bench
