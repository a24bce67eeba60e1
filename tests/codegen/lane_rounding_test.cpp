// How bodies in lanes round to bfloat16: every number, in pairs of sets, and NaNs with
// any bits.
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <source_location>
#include <string>
#include <vector>

#include "fusebook/codegen/emit_kernel.h"
#include "fusebook/cpu/cpu_kernel.h"
#include "fusebook/runtime/launch_table.h"
#include "support/jit_testing.h"
#include "support/reduced.h"
#include "support/testing.h"

using namespace testing;
using fuse::DType;
using fuse::OpCode;
using fuse::Plan;
using fuse::Program;
using fuse::ValueId;

namespace {

const auto here = std::source_location::current();

using Words = MemoryList<std::uint16_t>;

template <class T>
int add(Program& program, const MemoryList<T>& list, DType dtype) {
  fuse::SlotInfo info = list.info();
  info.dtype = dtype;
  return program.slot(list.view(), info);
}

ValueId apply(Program& program, OpCode op, const std::vector<ValueId>& in) {
  return program.apply(op, in, here);
}

void run(const Program& program) {
  const Plan plan =
      make_plan(program, [](const fuse::Origin&) { return true; });
  fuse::Table table;
  table.bind(plan, program, 1);
  const auto kernel = fuse::make_cpu_kernel(generate_cpu_source(plan));
  in_order([&] { kernel->launch(table); });
}

std::vector<std::uint16_t> all_words() {
  std::vector<std::uint16_t> words(65536);
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = std::uint16_t(i);
  return words;
}

double number_of(std::uint16_t word) {
  return reduced::decode(DType::bfloat16, word);
}

// ---- NaNs -------------------------------------------------------------------

// So many that whole sets of lanes and a rest are among them.
constexpr std::size_t elements = 45;

template <class T>
MemoryList<T> repeated(const char* name, std::vector<T> few) {
  std::vector<T> values(elements);
  for (std::size_t i = 0; i < elements; ++i) values[i] = few[i % few.size()];
  return MemoryList<T>(name, {values});
}

MemoryList<float> nans_of_float32() {
  std::vector<float> nans;
  for (const std::uint32_t bits : {0x7f800001U, 0x7fffffffU, 0xffffffffU,
                                   0xff800001U, 0x7fbfffffU, 0x7fc00000U}) {
    nans.push_back(std::bit_cast<float>(bits));
  }
  return repeated("wide", nans);
}

Words nans_of_float16() {
  return repeated<std::uint16_t>("halves",
                                 {0x7c01, 0x7fff, 0xffff, 0xfc01, 0x7dff});
}

Words nans_of_bfloat16() {
  return repeated<std::uint16_t>("brain",
                                 {0x7f81, 0x7fff, 0xffff, 0xff81, 0x7fbf});
}

struct Inputs {
  ValueId ones, brain, wide, halves;
};

/// Stores what `make` makes of these as bfloat16: no element may be a number.
template <class Make>
void check_stays_nan(const char* what, Make make) {
  CAPTURE(what);
  Words ones = repeated<std::uint16_t>("ones", {0x3f80});
  Words result = repeated<std::uint16_t>("result", {0});
  const Words brain = nans_of_bfloat16();
  const Words halves = nans_of_float16();
  const MemoryList<float> wide = nans_of_float32();
  Program program;
  const int to = add(program, result, DType::bfloat16);
  const Inputs in = {program.load(add(program, ones, DType::bfloat16), here),
                     program.load(add(program, brain, DType::bfloat16), here),
                     program.load(add(program, wide, DType::float32), here),
                     program.load(add(program, halves, DType::float16), here)};
  const ValueId value = make(program, in);
  program.store(to, program.cast(value, DType::bfloat16, here), here);
  jit_testing::with_all_registers([&] {
    run(program);
    for (const std::uint16_t word : result.values()[0]) {
      CHECK(std::isnan(number_of(word)));
    }
  });
}

// ---- what is written --------------------------------------------------------

// The text of a += b, of lists with these types.
std::string text_of_sum(DType first, DType second) {
  Words a = repeated<std::uint16_t>("a", {0x3f80});
  const Words b = repeated<std::uint16_t>("b", {0x3f80});
  const MemoryList<float> c = repeated<float>("c", {1});
  Program program;
  const int slot = add(program, a, first);
  const ValueId other =
      program.load(second == DType::float32 ? add(program, c, second)
                                            : add(program, b, second),
                   here);
  const ValueId sum =
      apply(program, OpCode::add, {program.load(slot, here), other});
  program.store(slot, program.cast(sum, first, here), here);
  return generate_cpu_source(
      make_plan(program, [](const fuse::Origin&) { return true; }));
}

}  // namespace

TEST_CASE("sums of every number of bfloat16 with another one") {
  jit_testing::with_all_registers([] {
    const std::vector<std::uint16_t> words = all_words();
    std::vector<std::uint16_t> others = words;
    std::reverse(others.begin(), others.end());
    std::rotate(others.begin(), others.begin() + 12345, others.end());
    Words a("a", {words});
    const Words b("b", {others});
    Words c("c", {words});
    Program program;
    const int sa = add(program, a, DType::bfloat16);
    const int sb = add(program, b, DType::bfloat16);
    const int sc = add(program, c, DType::bfloat16);
    // Rounded as it is computed, and where it is stored.
    const ValueId x = program.load(sa, here);
    const ValueId y = program.load(sb, here);
    program.store(sa, apply(program, OpCode::add, {x, y}), here);
    const ValueId wide = apply(program, OpCode::mul,
                               {program.cast(x, DType::float32, here),
                                program.cast(y, DType::float32, here)});
    program.store(sc, program.cast(wide, DType::bfloat16, here), here);
    run(program);
    for (std::size_t i = 0; i < words.size(); ++i) {
      const float first = float(number_of(words[i]));
      const float second = float(number_of(others[i]));
      const double sum = reduced::round(DType::bfloat16, first + second);
      const double product = reduced::round(DType::bfloat16, first * second);
      REQUIRE(same_value(number_of(a.values()[0][i]), sum));
      REQUIRE(same_value(number_of(c.values()[0][i]), product));
    }
  });
}

TEST_CASE("halves, numbers and long bodies in lists of bfloat16 alone") {
  jit_testing::with_all_registers([] {
    const std::vector<std::uint16_t> words = all_words();
    Words a("a", {words});
    Words b("b", {words});
    Words c("c", {words});
    Words d("d", {words});
    Program program;
    const int sa = add(program, a, DType::bfloat16);
    const int sb = add(program, b, DType::bfloat16);
    const int sc = add(program, c, DType::bfloat16);
    const int sd = add(program, d, DType::bfloat16);
    const ValueId x = program.load(sa, here);
    const ValueId wide = program.cast(x, DType::float32, here);
    // Its upper half is the number itself, also between two.
    const ValueId more =
        apply(program, OpCode::mul, {wide, program.constant(1 + 0x1p-10, {})});
    const ValueId half = apply(program, OpCode::high_half, {more});
    program.store(sb, program.cast(half, DType::bfloat16, here), here);
    program.store(sc, program.constant(0.375, {}), here);
    ValueId sum = program.load(sd, here);
    for (int k = 0; k < 70; ++k) {
      sum = apply(program, OpCode::add, {sum, program.constant(0, {})});
    }
    program.store(sd, sum, here);
    run(program);
    for (std::size_t i = 0; i < words.size(); ++i) {
      const double value = number_of(words[i]);
      if (std::abs(value) < 0x1p-125) continue;  // denormals have fewer digits
      REQUIRE(same_value(number_of(b.values()[0][i]), value));
      REQUIRE(same_value(number_of(c.values()[0][i]), 0.375));
      REQUIRE(same_value(number_of(d.values()[0][i]), value));
    }
  });
}

TEST_CASE("the upper halves of a short body, in pairs") {
  jit_testing::with_all_registers([] {
    std::vector<std::uint16_t> words(1000);
    for (std::size_t i = 0; i < words.size(); ++i) {
      words[i] = std::uint16_t(0x3f80 + i);
    }
    Words a("a", {words});
    Program program;
    const int slot = add(program, a, DType::bfloat16);
    const ValueId wide =
        program.cast(program.load(slot, here), DType::float32, here);
    const ValueId more =
        apply(program, OpCode::mul, {wide, program.constant(1 + 0x1p-10, {})});
    const ValueId half = apply(program, OpCode::high_half, {more});
    program.store(slot, program.cast(half, DType::bfloat16, here), here);
    run(program);
    CHECK(a.values()[0] == words);
  });
}

TEST_CASE("lists of any length keep their order") {
  jit_testing::with_all_registers([] {
    for (std::size_t length = 0; length <= 70; ++length) {
      CAPTURE(length);
      std::vector<std::uint16_t> words(length);
      for (std::size_t i = 0; i < length; ++i)
        words[i] = std::uint16_t(i * 128);
      Words a("a", {words});
      Words b("b", {words});
      Program program;
      const int sa = add(program, a, DType::bfloat16);
      const int sb = add(program, b, DType::bfloat16);
      const ValueId x = program.load(sa, here);
      program.store(sb, x, here);
      program.store(
          sa, apply(program, OpCode::add, {x, program.constant(0, {})}), here);
      run(program);
      CHECK(a.values()[0] == words);
      CHECK(b.values()[0] == words);
    }
  });
}

TEST_CASE("a NaN with any bits stays one") {
  const auto sum = [](Program& program, ValueId a, ValueId b) {
    return apply(program, OpCode::add, {a, b});
  };
  check_stays_nan("bfloat16", [&](Program& program, const Inputs& in) {
    return sum(program, in.brain, in.ones);
  });
  check_stays_nan("float32", [&](Program& program, const Inputs& in) {
    return sum(program, in.ones, in.wide);
  });
  check_stays_nan("float16", [&](Program& program, const Inputs& in) {
    return sum(program, in.halves, in.ones);
  });
  check_stays_nan("as it is",
                  [](Program&, const Inputs& in) { return in.wide; });
  check_stays_nan("a choice", [&](Program& program, const Inputs& in) {
    return sum(program,
               apply(program, OpCode::where, {in.ones, in.wide, in.ones}),
               in.ones);
  });
  check_stays_nan("its sign", [](Program& program, const Inputs& in) {
    return apply(program, OpCode::neg, {in.wide});
  });
  check_stays_nan("raised at random", [&](Program& program, const Inputs& in) {
    const ValueId most = program.constant(std::bit_cast<float>(0xffffU), {});
    return apply(program, OpCode::stochastic_half, {in.wide, most});
  });
  check_stays_nan("the lower half", [&](Program& program, const Inputs& in) {
    const ValueId joined =
        apply(program, OpCode::join_halves, {in.brain, in.ones});
    return sum(program, joined, in.ones);
  });
  check_stays_nan("a number", [&](Program& program, const Inputs& in) {
    const double nan = std::bit_cast<double>(0x7fffffffffffffffULL);
    return sum(program, in.ones, program.constant(nan, {}));
  });
}

TEST_CASE("roundings look for NaNs only where bfloat16 may not hold them") {
  const char* const without = "= round_result_bfloat16(";
  CHECK(contains(text_of_sum(DType::bfloat16, DType::bfloat16), without));
  CHECK_FALSE(contains(text_of_sum(DType::bfloat16, DType::float32), without));
  CHECK_FALSE(contains(text_of_sum(DType::bfloat16, DType::float16), without));
}

TEST_CASE("sets of lanes are pairs where all lists are bfloat16") {
  const char* const pairs = "in_pairs = true;";
  CHECK(contains(text_of_sum(DType::bfloat16, DType::bfloat16), pairs));
  CHECK_FALSE(contains(text_of_sum(DType::bfloat16, DType::float32), pairs));
  CHECK_FALSE(contains(text_of_sum(DType::float16, DType::float16), pairs));
}
