// Conversions between 16 bits and floats, wherever they are made: on the host,
// in the prebuilt loops, and in code compiled at run time.
#include "fusebook/ops/float16.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "fusebook/compile/compile.h"
#include "fusebook/foreach/foreach.h"
#include "fusebook/ops/element.h"
#include "fusebook/ops/loops.h"
#include "support/reduced.h"
#include "support/step_testing.h"

using namespace fuse;
using testing::same_value;

namespace {

constexpr int pattern_count = 65536;

std::vector<const LoopTable*> tables() {
  std::vector<const LoopTable*> all;
  for (const char* name : {"baseline", "x86-64-v3", "x86-64-v4"}) {
    if (const LoopTable* table = loops_for(name)) all.push_back(table);
  }
  return all;
}

bool is_nan(DType dtype, std::uint16_t bits) {
  return std::isnan(reduced::decode(dtype, bits));
}

/// The same pattern, or both NaN.
bool same_bits(DType dtype, std::uint16_t a, std::uint16_t b) {
  return a == b || (is_nan(dtype, a) && is_nan(dtype, b));
}

template <class Reduced>
std::vector<Reduced> all_patterns() {
  std::vector<Reduced> all(pattern_count);
  for (int i = 0; i < pattern_count; ++i) {
    all[std::size_t(i)].bits = std::uint16_t(i);
  }
  return all;
}

template <class From, class To>
std::vector<To> run(Loop loop, const std::vector<From>& from) {
  std::vector<To> to(from.size());
  const void* const in = from.data();
  loop(to.data(), &in, i64(from.size()));
  return to;
}

/// Numbers that are hard to round: all that 16 bits hold, the middle between
/// two of them, and what lies directly beside these in type T.
template <class T>
std::vector<T> hard_numbers(DType dtype) {
  std::vector<T> all;
  const auto add = [&](double value) {
    const T number = T(value);
    for (const T each : {number, std::nextafter(number, T(-HUGE_VAL)),
                         std::nextafter(number, T(HUGE_VAL))}) {
      all.push_back(each);
      all.push_back(-each);
    }
  };
  const reduced::Format format = reduced::format_of(dtype);
  for (int i = 0; i < pattern_count / 2; ++i) {
    const double value = reduced::decode(dtype, std::uint16_t(i));
    if (!std::isfinite(value)) continue;
    // Above the largest number the next one would be, were it not infinite.
    const double next = value == format.largest
                            ? std::ldexp(2.0, std::ilogb(value))
                            : reduced::decode(dtype, std::uint16_t(i + 1));
    const double middle = (value + next) / 2;
    REQUIRE(double(T(middle)) == middle);
    add(value);
    add(middle);
  }
  for (const double value :
       {HUGE_VAL, 1e300, 1e39, 1e-39, 1e-300, 5e-324, 0x1p-25, 0x1p-134}) {
    add(T(value));
  }
  all.push_back(std::numeric_limits<T>::quiet_NaN());
  testing::Random random(77);
  for (int i = 0; i < 50000; ++i) all.push_back(testing::any_value<T>(random));
  return all;
}

template <class T>
std::vector<double> rounded(DType dtype, const std::vector<T>& numbers) {
  std::vector<double> all;
  for (const T each : numbers) {
    all.push_back(reduced::round(dtype, double(each)));
  }
  return all;
}

template <class To>
bool are(const std::vector<To>& results, const std::vector<double>& wanted) {
  if (results.size() != wanted.size()) return false;
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (!same_value(double(results[i]), wanted[i])) return false;
  }
  return true;
}

Tensor tensor_of(std::vector<float>& numbers) {
  return from_blob(numbers.data(), {std::int64_t(numbers.size())});
}
Tensor tensor_of(std::vector<double>& numbers) {
  return from_blob(numbers.data(), {std::int64_t(numbers.size())},
                   DType::float64);
}

}  // namespace

TEST_CASE("the oracle is that of the formats") {
  CHECK(reduced::decode(DType::float16, 0x3c00) == 1);
  CHECK(reduced::decode(DType::float16, 0x7bff) == 65504);
  CHECK(reduced::decode(DType::float16, 0x0001) == 0x1p-24);
  CHECK(reduced::decode(DType::float16, 0x0400) == 0x1p-14);
  CHECK(std::isinf(reduced::decode(DType::float16, 0x7c00)));
  CHECK(is_nan(DType::float16, 0xfe00));
  CHECK(reduced::decode(DType::bfloat16, 0x3f80) == 1);
  CHECK(reduced::decode(DType::bfloat16, 0xc040) == -3);
  CHECK(reduced::decode(DType::bfloat16, 0x0001) == 0x1p-133);
  CHECK(reduced::decode(DType::bfloat16, 0x7f7f) ==
        reduced::format_of(DType::bfloat16).largest);
  CHECK(std::isinf(reduced::decode(DType::bfloat16, 0xff80)));
}

TEST_CASE_TEMPLATE("every pattern is its number", Reduced, Float16, BFloat16) {
  const DType dtype = dtype_of<Reduced>;
  const auto patterns = all_patterns<Reduced>();
  std::vector<double> wanted;
  for (const Reduced each : patterns) {
    wanted.push_back(reduced::decode(dtype, each.bits));
    REQUIRE(same_value(double(float(each)), wanted.back()));
    REQUIRE(same_value(double(each), wanted.back()));
  }
  for (const LoopTable* table : tables()) {
    CAPTURE(table->name);
    const auto& casts = table->casts[std::size_t(dtype)];
    CHECK(are(run<Reduced, float>(casts[0][0], patterns), wanted));
    CHECK(are(run<Reduced, double>(casts[1][0], patterns), wanted));
  }
}

TEST_CASE_TEMPLATE("every pattern comes back", Reduced, Float16, BFloat16) {
  const DType dtype = dtype_of<Reduced>;
  const auto patterns = all_patterns<Reduced>();
  for (const Reduced each : patterns) {
    REQUIRE(same_bits(dtype, Reduced(float(each)).bits, each.bits));
    REQUIRE(same_bits(dtype, Reduced(double(each)).bits, each.bits));
  }
  for (const LoopTable* table : tables()) {
    CAPTURE(table->name);
    const auto same = run<Reduced, Reduced>(
        table->casts[std::size_t(dtype)][std::size_t(dtype)][0], patterns);
    for (std::size_t i = 0; i < same.size(); ++i) {
      REQUIRE(same_bits(dtype, same[i].bits, patterns[i].bits));
    }
  }
}

TEST_CASE_TEMPLATE("from one 16-bit type to the other", Reduced, Float16,
                   BFloat16) {
  using Other =
      std::conditional_t<std::is_same_v<Reduced, Float16>, BFloat16, Float16>;
  const auto patterns = all_patterns<Reduced>();
  std::vector<double> wanted;
  for (const Reduced each : patterns) {
    wanted.push_back(reduced::round(dtype_of<Other>, double(each)));
  }
  for (const LoopTable* table : tables()) {
    CAPTURE(table->name);
    const Loop loop = table->casts[std::size_t(dtype_of<Reduced>)]
                                  [std::size_t(dtype_of<Other>)][0];
    CHECK(are(run<Reduced, Other>(loop, patterns), wanted));
  }
}

TEST_CASE_TEMPLATE("floats and doubles round once, halves to even", Reduced,
                   Float16, BFloat16) {
  const DType dtype = dtype_of<Reduced>;
  const auto check = [&]<class T>(T) {
    const std::vector<T> numbers = hard_numbers<T>(dtype);
    const std::vector<double> wanted = rounded(dtype, numbers);
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      REQUIRE(same_value(double(Reduced(numbers[i])), wanted[i]));
    }
    for (const LoopTable* table : tables()) {
      CAPTURE(table->name);
      const auto from = std::size_t(dtype_of<T>);
      const auto to = std::size_t(dtype);
      CHECK(are(run<T, Reduced>(table->casts[from][to][0], numbers), wanted));
      CHECK(are(run<T, float>(table->rounds[from][to][0], numbers), wanted));
    }
  };
  check(float{});
  check(double{});
}

TEST_CASE("a double must not become a float on the way") {
  // Just above the middle between 1 and its neighbour; as a float, the middle.
  const double above_f16 = 1 + 0x1p-11 + 0x1p-40;
  CHECK(double(Float16(above_f16)) == 1 + 0x1p-10);
  CHECK(double(Float16(float(above_f16))) == 1);
  const double above_bf16 = 1 + 0x1p-8 + 0x1p-40;
  CHECK(double(BFloat16(above_bf16)) == 1 + 0x1p-7);
  CHECK(double(BFloat16(float(above_bf16))) == 1);
}

TEST_CASE_TEMPLATE("single values repeat", Reduced, Float16, BFloat16) {
  const double number = 1 + 0x1p-11 + 0x1p-8 + 0x1p-40;
  const void* const in = &number;
  const auto to = std::size_t(dtype_of<Reduced>);
  for (const LoopTable* table : tables()) {
    std::vector<Reduced> results(100);
    table->casts[1][to][1](results.data(), &in, 100);
    std::vector<float> floats(100);
    table->rounds[1][to][1](floats.data(), &in, 100);
    const std::vector<double> wanted(100,
                                     reduced::round(dtype_of<Reduced>, number));
    CHECK(are(results, wanted));
    CHECK(are(floats, wanted));
  }
}

TEST_CASE_TEMPLATE("compiled code loads and stores every pattern", Reduced,
                   Float16, BFloat16) {
  const DType dtype = dtype_of<Reduced>;
  auto patterns = all_patterns<Reduced>();
  const TensorList from = {from_blob(patterns.data(), {pattern_count}, dtype)};
  const TensorList same = {zeros({pattern_count}, dtype)};
  const TensorList floats = {zeros({pattern_count})};
  const TensorList doubles = {zeros({pattern_count}, DType::float64)};
  auto step = compile([&] {
    foreach_copy_(same, from);
    foreach_copy_(floats, from);
    foreach_copy_(doubles, from);
  });
  step();
  CHECK(step.counters().compilations == 1);
  CHECK(bitwise_equal(same, from));
  CHECK(floats[0].to_vector().size() == pattern_count);
  for (int i = 0; i < pattern_count; ++i) {
    const double wanted = reduced::decode(dtype, std::uint16_t(i));
    REQUIRE(same_value(double(floats[0].data<float>()[i]), wanted));
    REQUIRE(same_value(doubles[0].data<double>()[i], wanted));
  }
}

TEST_CASE_TEMPLATE("compiled code rounds once, halves to even", Reduced,
                   Float16, BFloat16) {
  const DType dtype = dtype_of<Reduced>;
  const auto check = [&]<class T>(T) {
    std::vector<T> numbers = hard_numbers<T>(dtype);
    const std::vector<double> wanted = rounded(dtype, numbers);
    const TensorList from = {tensor_of(numbers)};
    const Shape shape = {std::int64_t(numbers.size())};
    const TensorList stored = {zeros(shape, dtype)};
    const TensorList widened = {zeros(shape, DType::float64)};
    for (const Backend backend : {Backend::compiled, Backend::interpreted}) {
      foreach_zero_(stored);
      foreach_zero_(widened);
      auto step = compile(
          [&] {
            foreach_copy_(stored, from);
            foreach_copy_(widened, foreach_to(from, dtype));
          },
          {.fullgraph = true, .backend = backend});
      step();
      CHECK(step.counters().launches == 1);
      CHECK(are(stored[0].to_vector(), wanted));
      CHECK(are(widened[0].to_vector(), wanted));
    }
  };
  check(float{});
  check(double{});
}

TEST_CASE_TEMPLATE("per-tensor numbers in 16 bits", Reduced, Float16,
                   BFloat16) {
  const DType dtype = dtype_of<Reduced>;
  const double number = 1 + 0x1p-11 + 0x1p-8 + 0x1p-40;
  for (const Backend backend : {Backend::compiled, Backend::interpreted}) {
    const TensorList scalars = TensorList::per_tensor(
        {tensor(0.3, dtype), tensor(-0.0, dtype), tensor(1e-8, dtype)});
    const std::vector<Tensor> before = {scalars[0].clone(), scalars[1].clone(),
                                        scalars[2].clone()};
    const TensorList sums = TensorList::per_tensor(fuse::scalars(3));
    auto step = compile(
        [&] {
          foreach_copy_(sums, foreach_add(scalars, number));
          foreach_copy_(scalars, foreach_mul(scalars, number));
        },
        {.fullgraph = true, .backend = backend});
    step();
    for (std::size_t i = 0; i < 3; ++i) {
      // Between load and store it is a double.
      const double old = before[i].item();
      CHECK(sums[i].item() == old + number);
      CHECK(same_value(scalars[i].item(), reduced::round(dtype, old * number)));
    }
  }
}
