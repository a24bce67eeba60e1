#include "fusebook/tensor/random.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "fusebook/support/error.h"

using namespace fuse;

TEST_CASE("the sequence is the one the standard fixes") {
  // The C++ standard gives the 10000th number of mt19937_64 with seed 5489.
  Generator generator(5489);
  std::uint64_t bits = 0;
  for (int i = 0; i < 10000; ++i) bits = generator.bits();
  CHECK(bits == 9981545732273789042ULL);
}

TEST_CASE("numbers are the upper bits of the draws") {
  Generator raw(7);
  Generator generator(7);
  const std::vector<double> narrow = rand({5}, generator).to_vector();
  for (const double value : narrow) {
    CHECK(value * 0x1p24 == double(raw.bits() >> 40));
  }
  const std::vector<double> wide =
      rand({5}, generator, DType::float64).to_vector();
  for (const double value : wide) {
    CHECK(value * 0x1p53 == double(raw.bits() >> 11));
  }
}

TEST_CASE("the same seed gives the same numbers, another one others") {
  Generator a(1);
  Generator b(1);
  Generator c(2);
  const Tensor first = rand({3, 3}, a);
  CHECK(bitwise_equal(first, rand({3, 3}, b)));
  CHECK_FALSE(bitwise_equal(first, rand({3, 3}, c)));
  CHECK_FALSE(bitwise_equal(first, rand({3, 3}, a)));
}

TEST_CASE("uniform_ fills its range evenly") {
  for (const DType dtype : {DType::float32, DType::float64}) {
    Generator generator(3);
    const Tensor numbers = empty({20000}, dtype);
    uniform_(numbers, -0.25, 0.75, generator);
    const std::vector<double> values = numbers.to_vector();
    const auto [low, high] = std::minmax_element(values.begin(), values.end());
    CHECK(*low >= -0.25);
    CHECK(*low < -0.249);
    CHECK(*high <= 0.75);
    CHECK(*high > 0.749);
    // The mean of n draws of width 1 scatters by sqrt(1 / 12 n) = 0.002.
    CHECK(std::abs(numbers.sum().item() / 20000 - 0.25) < 0.01);
  }
}

TEST_CASE("impossible ranges") {
  Generator generator(0);
  const Tensor target = zeros({1});
  CHECK_THROWS_AS(uniform_(target, 1, 0, generator), Error);
  CHECK_THROWS_AS(
      uniform_(target, 0, std::numeric_limits<double>::infinity(), generator),
      Error);
  CHECK_THROWS_AS(uniform_(target, std::nan(""), 1, generator), Error);
  uniform_(target, 2, 2, generator);
  CHECK(target.item() == 2);
}
