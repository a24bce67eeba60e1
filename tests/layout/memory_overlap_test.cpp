#include "fusebook/layout/memory_overlap.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <set>
#include <vector>

#include "support/testing.h"

using fuse::Layout;
using fuse::make_region;
using fuse::Region;
using testing::Random;

namespace {

using Numbers = std::vector<std::int64_t>;

struct Tensor {
  std::uintptr_t begin = 0;
  std::size_t size = 4;
  Numbers sizes;
  Numbers strides;

  Layout layout() const { return {sizes.data(), strides.data(), sizes.size()}; }
  std::int64_t numel() const {
    std::int64_t all = 1;
    for (const std::int64_t n : sizes) all *= n;
    return all;
  }
  Region region() const {
    const Layout lies = layout();
    return make_region(reinterpret_cast<const void*>(begin), numel(), &lies,
                       size);
  }
  // The elements one by one.
  std::vector<std::uintptr_t> elements() const {
    std::vector<std::uintptr_t> all;
    for (std::int64_t n = 0; n < numel(); ++n) {
      std::int64_t rest = n;
      std::int64_t offset = 0;
      for (std::size_t d = sizes.size(); d-- > 0;) {
        offset += rest % sizes[d] * strides[d];
        rest /= sizes[d];
      }
      all.push_back(begin + std::uintptr_t(offset) * size);
    }
    return all;
  }
  std::set<std::uintptr_t> bytes() const {
    std::set<std::uintptr_t> all;
    for (const std::uintptr_t first : elements()) {
      for (std::size_t b = 0; b < size; ++b) all.insert(first + b);
    }
    return all;
  }
};

// A view of a matrix or a block, as slicing makes them.
Tensor any_view(Random& random) {
  Tensor view;
  view.size = random.chance(0.8) ? 4 : random.chance(0.5) ? 8 : 2;
  view.begin =
      10000 + std::uintptr_t(random.below(60)) * (random.chance(0.8) ? 4 : 1);
  std::int64_t stride = 1;
  const int rank = random.below(4);
  for (int d = 0; d < rank; ++d) {
    const int room = 1 + random.below(8);
    const int step = random.chance(0.5) ? 1 : 1 + random.below(4);
    view.sizes.push_back(random.chance(0.05) ? 0 : 1 + random.below(room));
    view.strides.push_back(random.chance(0.05) ? 0 : stride * step);
    stride *= room * step;
  }
  for (int d = rank; d-- > 1;) {
    const auto other = std::size_t(random.below(d + 1));
    std::swap(view.sizes[std::size_t(d)], view.sizes[other]);
    std::swap(view.strides[std::size_t(d)], view.strides[other]);
  }
  return view;
}

bool share(const Tensor& a, const Tensor& b) {
  const auto all = b.bytes();
  for (const std::uintptr_t byte : a.bytes()) {
    if (all.count(byte) == 1) return true;
  }
  return false;
}

}  // namespace

TEST_CASE("two regions have a byte in common if their bytes, listed, do") {
  Random random(1);
  int common = 0;
  int apart = 0;  // although the one begins before the other ends
  for (int round = 0; round < 20000; ++round) {
    const Tensor a = any_view(random);
    const Tensor b = any_view(random);
    const Region x = a.region();
    const Region y = b.region();
    const bool wanted = share(a, b);
    INFO(round);
    REQUIRE(overlap(x, y) == wanted);
    REQUIRE(overlap(y, x) == wanted);
    const auto bytes = a.bytes();
    REQUIRE(x.end - x.begin ==
            (bytes.empty() ? 0 : *bytes.rbegin() + 1 - a.begin));
    REQUIRE(std::size_t(fuse::extent(a.numel(), a.layout())) * a.size ==
            x.end - x.begin);
    const bool near = x.begin < y.end && y.begin < x.end;
    if (wanted) ++common;
    if (!wanted && near) ++apart;
  }
  CHECK(common > 2000);
  CHECK(apart > 1000);
}

TEST_CASE("elements that share memory within one tensor") {
  Random random(2);
  int shared = 0;
  for (int round = 0; round < 5000; ++round) {
    const Tensor a = any_view(random);
    const bool wanted = a.bytes().size() < std::size_t(a.numel()) * a.size;
    INFO(round);
    REQUIRE(fuse::overlaps_itself(a.layout()) == wanted);
    shared += wanted ? 1 : 0;
  }
  CHECK(shared > 200);
  CHECK(shared < 4800);
}

TEST_CASE("slices of a large matrix are told apart at once") {
  // 4096 x 4096 floats: the columns by twos, by threes, rows, a transposed part.
  const std::int64_t n = 4096;
  const auto at = [](std::int64_t element) {
    return 1000000 + std::uintptr_t(element) * 4;
  };
  const Tensor even = {at(0), 4, {n, n / 2}, {n, 2}};
  const Tensor odd = {at(1), 4, {n, n / 2}, {n, 2}};
  const Tensor odd_by_four = {at(1), 4, {n, n / 4}, {n, 4}};
  const Tensor by_three = {at(1), 4, {n, n / 3}, {n, 3}};
  const Tensor column = {at(7), 4, {n}, {n}};
  const Tensor other_column = {at(8), 4, {n}, {n}};
  const Tensor lower = {at(n * n / 2), 4, {n, n / 2}, {1, n}};
  const Tensor upper = {at(0), 4, {n / 2, n}, {n, 1}};
  CHECK_FALSE(overlap(even.region(), odd.region()));
  CHECK_FALSE(overlap(even.region(), odd_by_four.region()));
  CHECK(overlap(odd.region(), odd_by_four.region()));
  CHECK(overlap(even.region(), by_three.region()));
  CHECK(overlap(odd.region(), column.region()));
  CHECK_FALSE(overlap(even.region(), column.region()));
  CHECK_FALSE(overlap(column.region(), other_column.region()));
  CHECK_FALSE(overlap(lower.region(), upper.region()));
  CHECK(overlap(lower.region(), column.region()));
}

TEST_CASE("tensors in which every element has the same place") {
  const Numbers shape = {3, 1, 4};
  const Numbers row_major = {4, 4, 1};
  const Numbers other_one = {4, 99, 1};  // a dimension of size 1
  const Numbers transposed = {1, 1, 3};
  const Numbers flat = {12};
  const Numbers one = {1};
  const Layout a = {shape.data(), row_major.data(), 3};
  const Layout b = {shape.data(), other_one.data(), 3};
  const Layout c = {shape.data(), transposed.data(), 3};
  const Layout d = {flat.data(), one.data(), 1};
  CHECK(fuse::same_places(&a, &b));
  CHECK(fuse::same_places(&a, nullptr));
  CHECK(fuse::same_places(nullptr, &b));
  CHECK(fuse::same_places(nullptr, nullptr));
  CHECK_FALSE(fuse::same_places(&a, &c));
  CHECK_FALSE(fuse::same_places(nullptr, &c));
  CHECK_FALSE(fuse::same_places(&c, nullptr));
  CHECK_FALSE(fuse::same_places(&c, &d));
}
