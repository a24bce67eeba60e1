#include "bench/cases.h"

namespace fuse::bench {
namespace {

std::vector<std::int64_t> same(std::size_t count, std::int64_t size) {
  return std::vector<std::int64_t>(count, size);
}

// The parameters of GPT-2 small (Radford et al., 2019) in their order: 148
// tensors, 124,439,808 elements.
std::vector<std::int64_t> gpt2_small() {
  constexpr std::int64_t width = 768;
  std::vector<std::int64_t> sizes = {50257 * width, 1024 * width};
  for (int layer = 0; layer < 12; ++layer) {
    const std::vector<std::int64_t> block = {
        width,
        width,  // first layer norm
        width * 3 * width,
        3 * width,  // attention: queries, keys, values
        width * width,
        width,  // attention: projection
        width,
        width,  // second layer norm
        width * 4 * width,
        4 * width,  // up
        4 * width * width,
        width};  // down
    sizes.insert(sizes.end(), block.begin(), block.end());
  }
  sizes.insert(sizes.end(), {width, width});  // last layer norm
  return sizes;
}

}  // namespace

const std::vector<Case>& all_cases() {
  static const std::vector<Case> cases = {
      {"10 x 1024 x 1024", same(10, 1024 * 1024), true, true},
      {"1000 x 64", same(1000, 64), true, true},
      {"10000 x 64", same(10000, 64), true, true},
      {"10000 x 1024", same(10000, 1024)},
      {"1 x 2^26", same(1, std::int64_t(1) << 26)},
      {"GPT-2 small", gpt2_small(), true}};
  return cases;
}

}  // namespace fuse::bench
