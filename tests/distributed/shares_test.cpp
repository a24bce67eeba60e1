// How parameters are cut: no other process is needed.
#include "fusebook/distributed/shares.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

using namespace fuse;

namespace {

constexpr std::int64_t unit = 8192;

// All elements of all parameters, once and in order, and owners in order.
void check_cover(const std::vector<Shareable>& params, int ranks) {
  CAPTURE(ranks);
  const auto shares = make_shares(params, ranks);
  std::size_t next = 0;
  int owner = 0;
  for (std::size_t p = 0; p < params.size(); ++p) {
    std::int64_t begin = 0;
    int owners = 0;
    for (; next < shares.size() && shares[next].param == p; ++next) {
      CHECK(shares[next].begin == begin);
      CHECK(shares[next].owner >= owner);
      CHECK(shares[next].owner < ranks);
      if (begin > 0) CHECK(shares[next].owner > owner);
      owner = shares[next].owner;
      begin += shares[next].count;
      ++owners;
      if (begin == params[p].numel) continue;
      REQUIRE(params[p].unit > 0);
      CHECK(begin % params[p].unit == 0);
    }
    CHECK(begin == params[p].numel);
    CHECK(owners >= 1);
  }
  CHECK(next == shares.size());
}

std::vector<std::int64_t> sizes_of(const std::vector<Share>& shares,
                                   int ranks) {
  std::vector<std::int64_t> sizes(std::size_t(ranks), 0);
  for (const Share& each : shares) sizes[std::size_t(each.owner)] += each.count;
  return sizes;
}

}  // namespace

TEST_CASE("every element has one owner") {
  const std::vector<std::vector<Shareable>> all = {
      {},
      {{0, unit}},
      {{1, unit}},
      {{0, 0}, {5, 0}, {0, unit}},
      {{unit * 10, unit}},
      {{unit * 10 + 1, unit}, {3, unit}, {unit * 4, 0}, {0, 0}},
      {{unit - 1, unit}, {unit, unit}, {unit + 1, unit}, {7, 0}},
  };
  for (const auto& params : all) {
    for (const int ranks : {1, 2, 3, 4, 7, 100}) check_cover(params, ranks);
  }
}

TEST_CASE("shares are of nearly the same size") {
  for (const int ranks : {2, 3, 4, 7}) {
    const auto sizes = sizes_of(
        make_shares({{unit * 100 + 5, unit}, {unit * 33, unit}}, ranks), ranks);
    const auto [least, most] = std::minmax_element(sizes.begin(), sizes.end());
    CHECK(*most - *least <= 2 * unit);
  }
}

TEST_CASE("what must stay whole is not cut") {
  const auto shares = make_shares({{unit * 100, 0}, {unit * 100, 0}}, 4);
  CHECK(shares.size() == 2);
  CHECK(shares[0].owner != shares[1].owner);
}

TEST_CASE("sizes beyond 32 bits") {
  const std::int64_t huge = std::int64_t(1) << 62;
  const auto shares = make_shares({{huge, unit}}, 4);
  CHECK(shares.size() == 4);
  for (const Share& each : shares) CHECK(each.count == huge / 4);
}

TEST_CASE("a share shows the elements of its parameter") {
  Tensor param = zeros({4, 3});
  for (int i = 0; i < 12; ++i) param.data<float>()[i] = float(i);
  const Tensor part = view_of({0, 5, 4, 0}, param);
  CHECK(part.shape() == Shape{4});
  CHECK(part.to_vector() == std::vector<double>{5, 6, 7, 8});
  CHECK(view_of({0, 0, 12, 0}, param).shape() == Shape{4, 3});
}
