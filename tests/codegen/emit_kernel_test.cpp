#include "fusebook/codegen/emit_kernel.h"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <limits>
#include <memory>
#include <set>
#include <source_location>
#include <string>
#include <vector>

#include "fusebook/codegen/keep_source.h"
#include "fusebook/codegen/names.h"
#include "fusebook/cpu/cpu_kernel.h"
#include "fusebook/runtime/launch_table.h"
#include "support/testing.h"

using namespace testing;
using fuse::DType;
using fuse::OpCode;
using fuse::Plan;
using fuse::Program;
using fuse::Rate;
using fuse::ValueId;

namespace {

const auto here = std::source_location::current();
using Floats = MemoryList<float>;
using Doubles = MemoryList<double>;

bool always(const fuse::Origin&) { return true; }

ValueId apply(Program& p, OpCode op, std::initializer_list<ValueId> in) {
  return p.apply(op, std::vector<ValueId>(in), here);
}

Plan plan_of(const Program& p) { return make_plan(p, always); }

// Generates, compiles and runs a program, part after part.
void run(const Program& p, int threads = 1) {
  const Plan plan = plan_of(p);
  fuse::Table table;
  table.bind(plan, p, threads);
  const auto kernel = fuse::make_cpu_kernel(generate_cpu_source(plan));
  in_order([&] { kernel->launch(table); });
}

// A step with all rates over `count` tensors: its generated source.
std::string source_for(std::size_t count, std::string (*generate)(const Plan&) =
                                              fuse::generate_cpu_source) {
  const std::vector<std::int64_t> sizes(count, 3);
  Floats params = Floats::zeros("params", sizes);
  Floats grads = Floats::zeros("grads", sizes);
  Doubles steps = Doubles::zeros("steps", std::vector<std::int64_t>(count, 1));
  Program p;
  const auto s = p.slot(steps.view(), steps.info(Rate::entry));
  p.store(s, apply(p, OpCode::add, {p.load(s, here), p.constant(1, {})}), here);
  const auto a = p.slot(params.view(), params.info());
  const auto b = p.slot(grads.view(), grads.info());
  const ValueId rate =
      apply(p, OpCode::pow, {p.argument(0.9, {.name = "lr"}), p.load(s, here)});
  const ValueId params_value = p.load(a, here);
  const ValueId grads_value = p.load(b, here);
  p.store(a, apply(p, OpCode::sub_scaled, {params_value, grads_value, rate}),
          here);
  return generate(plan_of(p));
}

// The first of `count` lists becomes the sum of all, each times a scalar if
// `scaled`: its source for a GPU.
std::string sum_of_lists(int count, bool scaled, DType dtype = DType::float32) {
  std::deque<Floats> lists;
  Program p;
  ValueId sum = p.constant(0, {});
  for (int k = 0; k < count; ++k) {
    lists.push_back(Floats::zeros("list", {4}));
    fuse::SlotInfo info = lists.back().info();
    info.dtype = dtype;
    const auto slot = p.slot(lists.back().view(), info);
    const ValueId scale =
        scaled ? p.argument(k, {.name = "scale"}) : p.constant(k + 2, {});
    sum = apply(p, OpCode::add_scaled, {sum, p.load(slot, here), scale});
  }
  p.store(0, sum, here);
  return generate_gpu_source(plan_of(p));
}

bool begins_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
bool in_word(char c) { return begins_word(c) || (c >= '0' && c <= '9'); }

// Every word of a text that could be an identifier, comments aside.
std::set<std::string> words_of(const std::string& text) {
  std::set<std::string> words;
  for (std::size_t i = 0; i < text.size();) {
    if (text.compare(i, 2, "//") == 0)
      i = std::min(text.find('\n', i), text.size() - 1);
    if (!begins_word(text[i]) || (i > 0 && in_word(text[i - 1]))) {
      ++i;
      continue;
    }
    std::size_t end = i;
    while (end < text.size() && in_word(text[end])) ++end;
    words.insert(text.substr(i, end - i));
    i = end;
  }
  return words;
}

// The keywords of C++20 and its alternative operators.
const char* const keywords =
    "alignas alignof and and_eq asm auto bitand bitor bool break case catch "
    "char char8_t char16_t char32_t class compl concept const consteval "
    "constexpr constinit const_cast continue co_await co_return co_yield "
    "decltype default delete do double dynamic_cast else enum explicit export "
    "extern false float for friend goto if inline int long mutable namespace "
    "new noexcept not not_eq nullptr operator or or_eq private protected "
    "public register reinterpret_cast requires return short signed sizeof "
    "static static_assert static_cast struct switch template this "
    "thread_local throw true try typedef typeid typename union unsigned using "
    "virtual void volatile wchar_t while xor xor_eq";

// What CUDA declares before the first line of a text, or keeps for itself.
const char* const cuda_words =
    "__CUDACC__ __CUDA_ARCH__ __constant__ __device__ __forceinline__ "
    "__global__ __host__ __launch_bounds__ __managed__ __noinline__ "
    "__restrict__ __shared__ __syncthreads CUDARTAPI CUDART_VERSION "
    "CU_UUID_HAS_BEEN_DEFINED NOMINMAX NULL NV_IF_TARGET NV_IS_DEVICE "
    "NV_PROVIDES_SM_90 STD abs alloca assert atomicAdd blockDim blockIdx bool2 "
    "clock cudaError_t cudaEventDefault cudaStreamLegacy cudaStream_t dim3 "
    "double2 fabsf float4 "
    "gridDim half int4 isnan longlong2 max min printf rsqrt signbit size_t "
    "sqrtf threadIdx uint uint4 va_arg va_end va_start warpSize";

constexpr const char* odd_labels[] = {"",
                                      " ",
                                      "1",
                                      "9lives",
                                      "a b",
                                      "a_b",
                                      "a-b",
                                      "a__b",
                                      "\xc3\xbc",
                                      "\xe6\x9d\x83\xe9\x87\x8d",
                                      "x;}",
                                      "*/",
                                      "//",
                                      "\\",
                                      "\"",
                                      "a\nb",
                                      "#include",
                                      "%s",
                                      "params",
                                      "params_next",
                                      "params_next_1",
                                      "mul_1",
                                      "mul",
                                      "lr",
                                      "lr_next",
                                      "lr_next_f32",
                                      "lr_next_f32_1",
                                      "linux",
                                      "unix",
                                      "i386",
                                      "errno",
                                      "NULL",
                                      "INFINITY"};

// Everything that could break a name: keywords, all words of the generated
// text and of what stands before it, operations, and what is no name at all.
std::vector<std::string> hostile_labels() {
  std::set<std::string> labels = words_of(keywords);
  labels.merge(words_of(cuda_words));
  labels.merge(words_of(source_for(1)));
  labels.merge(words_of(source_for(1, fuse::generate_gpu_source)));
  for (const auto& op : fuse::op_table()) labels.insert(std::string(op.name));
  labels.insert(std::begin(odd_labels), std::end(odd_labels));
  labels.insert(std::string(1000, 'n'));
  return {labels.begin(), labels.end()};
}

}  // namespace

TEST_CASE("the text depends on neither the number of tensors nor addresses") {
  const std::string ten = source_for(10);
  CHECK(source_for(10000) == ten);
  CHECK(source_for(0) == ten);
  CHECK(contains(ten, "struct Body0"));
}

TEST_CASE("labels name the lists in the text") {
  const std::string text = source_for(1);
  CHECK(contains(text,
                 "const float params_next = sub_scaled<float>(params, "
                 "grads, t.pow_1);"));
  CHECK(contains(text, "t.pow_1 = float(pow_1);"));
  CHECK(contains(text, "in.steps = load_scalar<double>(p[0]);"));
}

TEST_CASE("only the operations that are used are written") {
  const std::string text = source_for(1);
  CHECK(contains(text, "FUSE_FN T pow(T a, T b) {"));
  CHECK_FALSE(contains(text, "FUSE_FN T lerp("));
}

TEST_CASE("packs shrink where the registers of a thread would not hold them") {
  // A pack of four floats is four registers, its address two, a scalar one.
  CHECK(contains(sum_of_lists(5, false), "constexpr int pack = 4;"));   // 30
  CHECK(contains(sum_of_lists(6, false), "constexpr int pack = 2;"));   // 36
  CHECK(contains(sum_of_lists(4, true), "constexpr int pack = 4;"));    // 28
  CHECK(contains(sum_of_lists(5, true), "constexpr int pack = 2;"));    // 35
  CHECK(contains(sum_of_lists(40, false), "constexpr int pack = 2;"));  // 160
  // One of eight elements of 16 bits is four, or eight if they are stored.
  for (const DType dtype : {DType::float16, DType::bfloat16}) {
    CHECK(contains(sum_of_lists(4, false, dtype),
                   "constexpr int pack = 8;"));  // 28
    CHECK(contains(sum_of_lists(5, false, dtype),
                   "constexpr int pack = 4;"));  // 34
  }
}

TEST_CASE("elements of 16 bits share the registers of a pack") {
  const std::string text = sum_of_lists(2, false, DType::float16);
  CHECK(contains(text, "x.list = from_float16(half_of(from.list, k));"));
  CHECK(contains(text, "put_half(to.list, k, to_float16(x.list));"));
  CHECK_FALSE(contains(text, "from.list.value[k]"));
  CHECK(contains(sum_of_lists(2, false), "x.list = from.list.value[k];"));
}

TEST_CASE("any label gives code that compiles and computes the same") {
  // Each label names a list of tensors, a list of per-tensor scalars and a
  // number, all in one body:
  //   scalar = scalar + number;  sum = sum + element * scalar, or sum - ...
  // Which of the two differs from body to body, so that none are merged.
  const std::vector<std::string> labels = hostile_labels();
  REQUIRE(labels.size() > 200);
  constexpr std::size_t in_a_body = 16;
  Program p;
  std::deque<Floats> sums;
  std::deque<Floats> elements;
  std::deque<Doubles> scalars;
  std::vector<float> expected;
  for (std::size_t k = 0; k < labels.size(); ++k) {
    if (k % in_a_body == 0) {
      sums.emplace_back("x", std::vector<std::vector<float>>{{0}});
      expected.push_back(0);
    }
    const char* const label = labels[k].c_str();
    const auto n = float(k);
    elements.emplace_back(label, std::vector<std::vector<float>>{{n}});
    scalars.emplace_back(label, std::vector<std::vector<double>>{{n + 0.5}});
    const auto total = p.slot(sums.back().view(), sums.back().info());
    const auto e = p.slot(elements.back().view(), elements.back().info());
    const auto s =
        p.slot(scalars.back().view(), scalars.back().info(Rate::entry));
    const ValueId number = p.argument(double(k % 7), {.name = label});
    // Used by elements as a float, and by its own list as a double.
    const ValueId next = apply(p, OpCode::add, {p.load(s, here), number});
    p.store(s, next, here);
    const bool plus = (k / in_a_body >> (k % in_a_body) & 1U) != 0;
    p.store(total,
            apply(p, plus ? OpCode::add_scaled : OpCode::sub_scaled,
                  {p.load(total, here), p.load(e, here), next}),
            here);
    const float product = n * (n + 0.5F + float(k % 7));
    expected.back() += plus ? product : -product;
  }
  run(p);
  const Plan plan = plan_of(p);
  CHECK(plan.bodies.size() == sums.size());
  // For whoever compiles that for a GPU (gpu_code_check).
  fuse::keep_source(plan);
  for (std::size_t k = 0; k < labels.size(); ++k) {
    INFO(labels[k]);
    CHECK(sums[k / in_a_body][0][0] == expected[k / in_a_body]);
    CHECK(scalars[k][0][0] == double(k) + 0.5 + double(k % 7));
  }
}

TEST_CASE("names are unique and stable") {
  Program p;
  std::deque<Floats> lists;
  std::vector<ValueId> values;
  for (int k = 0; k < 4; ++k) {
    lists.push_back(Floats::zeros(k % 2 == 0 ? "w" : "w_1", {1}));
    const auto slot = p.slot(lists.back().view(), lists.back().info());
    values.push_back(apply(p, OpCode::neg, {p.load(slot, here)}));
    p.store(slot, values.back(), here);
  }
  Floats out = Floats::zeros("out", {1});
  ValueId all = values[0];
  for (int k = 1; k < 4; ++k) {
    all = apply(p, OpCode::add, {all, values[std::size_t(k)]});
  }
  p.store(p.slot(out.view(), out.info()), all, here);
  const Plan plan = plan_of(p);
  const fuse::BodyNames names = name_body(plan.bodies[0]);
  std::set<std::string> seen(names.slots.begin(), names.slots.end());
  CHECK(seen.size() == names.slots.size());
  for (std::size_t i = 0; i < names.values.size(); ++i) {
    const auto& node = plan.bodies[0].nodes[i];
    if (node.op == OpCode::load) continue;  // named as its list
    CHECK(seen.insert(names.values[i]).second);
  }
  CHECK(name_body(plan.bodies[0]).values == names.values);
}

TEST_CASE("constants are hexadecimal and keep every bit") {
  Random random(4);
  for (int n = 0; n < 20000; ++n) {
    const auto bits = random.bits();
    const auto wide = std::bit_cast<double>(bits);
    const auto narrow = std::bit_cast<float>(std::uint32_t(bits));
    for (const double value : {wide, any_value<double>(random)}) {
      if (!std::isfinite(value)) continue;
      const std::string text = constant_text(value, DType::float64);
      char* end = nullptr;
      REQUIRE(same_value(std::strtod(text.c_str(), &end), value));
      REQUIRE(std::string(end).starts_with(" /* "));
      // The comment is the same number for people.
      REQUIRE(same_value(std::strtod(end + 4, nullptr), value));
    }
    for (const float value : {narrow, any_value<float>(random)}) {
      if (!std::isfinite(value)) continue;
      const std::string text = constant_text(double(value), DType::float32);
      char* end = nullptr;
      REQUIRE(same_value(std::strtof(text.c_str(), &end), value));
      REQUIRE(std::string(end).starts_with("f /* "));
    }
  }
  CHECK(constant_text(0.1, DType::float64) == "0x1.999999999999ap-4 /* 0.1 */");
  CHECK(constant_text(0.1, DType::float32) == "0x1.99999ap-4f /* 0.1 */");
  CHECK(constant_text(-0.0, DType::float64) == "-0x0p+0 /* -0 */");
  CHECK(contains(constant_text(1e300, DType::float32), "FUSE_INFINITY"));
}

TEST_CASE("constants of every kind arrive in the kernel") {
  std::vector<double> numbers = special_values<double>();
  for (const float x : special_values<float>()) numbers.push_back(double(x));
  // `copysign` reads the sign of a NaN.
  numbers.push_back(-std::numeric_limits<double>::quiet_NaN());
  const std::size_t count = numbers.size();
  Program p;
  // out[k] = where(in, constant k, 0), which no compiler needs to compute.
  std::deque<Floats> floats;
  std::deque<Doubles> doubles;
  Floats ones_f("ones", {{1}});
  Doubles ones_d("wide_ones", {{1}});
  const ValueId in_f = p.load(p.slot(ones_f.view(), ones_f.info()), here);
  const ValueId in_d = p.load(p.slot(ones_d.view(), ones_d.info()), here);
  for (const double number : numbers) {
    floats.push_back(Floats::zeros("out", {1}));
    doubles.push_back(Doubles::zeros("out", {1}));
    const ValueId c = p.constant(number, {});
    const ValueId zero = p.constant(0, {});
    p.store(p.slot(floats.back().view(), floats.back().info()),
            apply(p, OpCode::where, {in_f, c, zero}), here);
    p.store(p.slot(doubles.back().view(), doubles.back().info()),
            apply(p, OpCode::where, {in_d, c, zero}), here);
  }
  run(p);
  for (std::size_t k = 0; k < count; ++k) {
    INFO(numbers[k]);
    CHECK(same_value(floats[k][0][0], float(numbers[k])));
    CHECK(same_value(doubles[k][0][0], numbers[k]));
    CHECK(std::signbit(floats[k][0][0]) == std::signbit(numbers[k]));
    CHECK(std::signbit(doubles[k][0][0]) == std::signbit(numbers[k]));
  }
}

TEST_CASE("several bodies in one source") {
  Program p;
  Floats a("a", {{1, 2}, {3}});
  Doubles b("b", {{4}, {}, {5, 6}});
  Doubles steps("steps", {{7}, {8}});
  const auto sa = p.slot(a.view(), a.info());
  const auto sb = p.slot(b.view(), b.info());
  const auto ss = p.slot(steps.view(), steps.info(Rate::entry));
  p.store(sa, apply(p, OpCode::neg, {p.load(sa, here)}), here);
  p.store(sb, apply(p, OpCode::mul, {p.load(sb, here), p.load(sb, here)}),
          here);
  p.store(ss, apply(p, OpCode::add, {p.load(ss, here), p.constant(1, {})}),
          here);
  const std::string text = generate_bodies(plan_of(p));
  CHECK(contains(text, "struct Body2"));
  CHECK_FALSE(contains(text, "struct Body3"));
  run(p);
  CHECK(a.values() == std::vector<std::vector<float>>{{-1, -2}, {-3}});
  CHECK(b.values() == std::vector<std::vector<double>>{{16}, {}, {25, 36}});
  CHECK(steps.values() == std::vector<std::vector<double>>{{8}, {9}});
}

// Each adds one a different number of times, so that no two bodies are alike.
TEST_CASE("loops are part of the kernel where it has few bodies") {
  for (const int bodies : {1, 4, 5, 40}) {
    CAPTURE(bodies);
    Program p;
    std::deque<Floats> lists;
    for (int n = 0; n < bodies; ++n) {
      lists.push_back(
          Floats("list", {{1, 2, 3}, {}, std::vector<float>(45, float(n))}));
      const auto slot = p.slot(lists.back().view(), lists.back().info());
      ValueId sum = p.load(slot, here);
      for (int k = 0; k < n; ++k) {
        sum = apply(p, OpCode::add, {sum, p.constant(1, {})});
      }
      p.store(slot, apply(p, OpCode::neg, {sum}), here);
    }
    const Plan plan = plan_of(p);
    CHECK(plan.bodies.size() == std::size_t(bodies));
    CHECK(contains(generate_cpu_source(plan), "#define FUSE_LOOP inline") ==
          (bodies > 4));
    run(p, 2);
    for (int n = 0; n < bodies; ++n) {
      const auto ones = float(n);
      CHECK(lists[std::size_t(n)].values() ==
            std::vector<std::vector<float>>{{-1 - ones, -2 - ones, -3 - ones},
                                            {},
                                            std::vector<float>(45, -2 * ones)});
    }
  }
}

TEST_CASE("sets of lanes take turns in short bodies, with the same results") {
  using Words = MemoryList<std::uint16_t>;
  for (const int additions : {64, 65}) {
    CAPTURE(additions);
    // Of whole numbers below 256, the lower half of a float is zero.
    const auto upper = [](std::size_t number) {
      return std::uint16_t(std::bit_cast<std::uint32_t>(float(number)) >> 16);
    };
    std::vector<std::uint16_t> numbers(103);
    std::vector<std::uint16_t> sums(numbers.size());
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      numbers[i] = upper(i);
      sums[i] = upper(i + std::size_t(additions));
    }
    Words list("list", {numbers});
    fuse::SlotInfo info = list.info();
    info.dtype = DType::bfloat16;
    Program p;
    const auto slot = p.slot(list.view(), info);
    ValueId sum = p.load(slot, here);
    for (int k = 0; k < additions; ++k)
      sum = apply(p, OpCode::add, {sum, p.constant(1, {})});
    p.store(slot, sum, here);
    const std::string text = generate_cpu_source(plan_of(p));
    CHECK(contains(text, "is_long = true;") == (additions > 64));
    CHECK(contains(text, "schedule-insns") == (additions <= 64));
    run(p);
    CHECK(list.values() == std::vector<std::vector<std::uint16_t>>{sums});
  }
}

TEST_CASE("per-tensor stores of rows that threads share come last") {
  // One large tensor that all parts read the step of, and small ones.
  Floats a = Floats::zeros("a", {0, 200000, 5, 0, 300});
  Doubles steps("steps", {{1}, {2}, {3}, {4}, {5}});
  Program p;
  const auto s = p.slot(steps.view(), steps.info(Rate::entry));
  const auto sa = p.slot(a.view(), a.info());
  const ValueId next =
      apply(p, OpCode::add, {p.load(s, here), p.constant(1, {})});
  p.store(s, next, here);
  p.store(sa, apply(p, OpCode::add, {p.load(sa, here), next}), here);
  for (int round = 0; round < 5; ++round) run(p, 8);
  for (std::size_t e = 0; e < 5; ++e) {
    CHECK(steps[e][0] == double(e) + 6);
    // The sum of five consecutive step counts.
    for (const float x : a[e]) REQUIRE(x == float(5 * (e + 1) + 15));
  }
}
