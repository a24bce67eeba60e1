// Where a body in lanes is cut in two, and that elements are computed across the cut.
#include "fusebook/codegen/element_parts.h"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <source_location>
#include <string>
#include <vector>

#include "fusebook/codegen/emit_kernel.h"
#include "fusebook/cpu/cpu_kernel.h"
#include "fusebook/runtime/launch_table.h"
#include "support/testing.h"

using namespace testing;
using fuse::DType;
using fuse::ElementParts;
using fuse::OpCode;
using fuse::Plan;
using fuse::Program;
using fuse::ValueId;

namespace {

const auto here = std::source_location::current();

using Words = MemoryList<std::uint16_t>;

// The whole numbers that a bfloat16 holds.
std::uint16_t word_of(double number) {
  return std::uint16_t(std::bit_cast<std::uint32_t>(float(number)) >> 16);
}
double number_of(std::uint16_t word) {
  return double(std::bit_cast<float>(std::uint32_t(word) << 16));
}

Words list_of(const char* name, std::int64_t length, int first) {
  std::vector<std::uint16_t> words;
  for (std::int64_t i = 0; i < length; ++i)
    words.push_back(word_of(double(first + i % 60)));
  return Words(name, {words});
}

/// A program over lists of bfloat16, or of another type.
class Writer {
 public:
  explicit Writer(DType dtype = DType::bfloat16) : dtype_(dtype) {}

  /// A list as a slot of the program.
  template <class T>
  int add(const MemoryList<T>& list) {
    fuse::SlotInfo info = list.info();
    info.dtype = dtype_;
    return program.slot(list.view(), info);
  }
  ValueId load(int slot) { return program.load(slot, here); }
  ValueId apply(OpCode op, const std::vector<ValueId>& in) {
    return program.apply(op, in, here);
  }
  ValueId number(double value) { return program.constant(value, {}); }
  void store(int slot, ValueId value) { program.store(slot, value, here); }

  Plan plan() const {
    return make_plan(program, [](const fuse::Origin&) { return true; });
  }

  Program program;

 private:
  DType dtype_;
};

/// a += b; c += sqrt(a * a) / 2: the sum is stored before the root is taken, and c
/// waits for it.
void write_sum_and_root(Writer& writer, int a, int b, int c) {
  const ValueId sum =
      writer.apply(OpCode::add, {writer.load(a), writer.load(b)});
  writer.store(a, sum);
  const ValueId square = writer.apply(OpCode::mul, {sum, sum});
  const ValueId root = writer.apply(OpCode::sqrt, {square});
  const ValueId half = writer.apply(OpCode::div, {root, writer.number(2)});
  writer.store(c, writer.apply(OpCode::add, {writer.load(c), half}));
}

std::vector<OpCode> kept_operations(const fuse::Body& body) {
  std::vector<OpCode> operations;
  const ElementParts parts(body);
  for (const std::int32_t id : parts.kept())
    operations.push_back(body.nodes[std::size_t(id)].op);
  return operations;
}

void run(const Writer& writer, const Plan& plan) {
  fuse::Table table;
  table.bind(plan, writer.program, 1);
  const auto kernel = fuse::make_cpu_kernel(generate_cpu_source(plan));
  in_order([&] { kernel->launch(table); });
}

}  // namespace

TEST_CASE("what depends on a division or a root waits") {
  const Words a = list_of("a", 3, 1), b = list_of("b", 3, 1),
              c = list_of("c", 3, 1);
  Writer writer;
  write_sum_and_root(writer, writer.add(a), writer.add(b), writer.add(c));
  const Plan plan = writer.plan();
  REQUIRE(plan.bodies.size() == 1);
  const fuse::Body& body = plan.bodies[0];
  const ElementParts parts(body);
  REQUIRE(parts.two());
  std::vector<OpCode> waiting;
  for (std::size_t id = 0; id < body.nodes.size(); ++id) {
    if (parts.waits(std::int32_t(id))) waiting.push_back(body.nodes[id].op);
  }
  CHECK(waiting == std::vector<OpCode>{OpCode::sqrt, OpCode::div, OpCode::add});
  // The square, whose root is taken, and c.
  CHECK(kept_operations(body) ==
        std::vector<OpCode>{OpCode::mul, OpCode::load});
}

TEST_CASE(
    "a body has one part where nothing waits, or there is nothing else to do") {
  struct Row {
    const char* what;
    OpCode first, second;
    DType dtype;
    bool two;
  };
  for (const Row& row : {
           Row{"a division behind a sum", OpCode::add, OpCode::div,
               DType::bfloat16, true},
           Row{"a division behind a sum of float16", OpCode::add, OpCode::div,
               DType::float16, true},
           Row{"no division", OpCode::add, OpCode::mul, DType::bfloat16, false},
           Row{"divisions alone", OpCode::div, OpCode::div, DType::bfloat16,
               false},
           Row{"a division before a sum", OpCode::div, OpCode::add,
               DType::bfloat16, false},
       }) {
    CAPTURE(row.what);
    const Words a = list_of("a", 3, 1), b = list_of("b", 3, 1);
    Writer writer(row.dtype);
    const int sa = writer.add(a), sb = writer.add(b);
    const ValueId first =
        writer.apply(row.first, {writer.load(sa), writer.load(sb)});
    writer.store(sa, writer.apply(row.second, {first, writer.load(sb)}));
    const Plan plan = writer.plan();
    CHECK(ElementParts(plan.bodies[0]).two() == row.two);
    const std::string text = generate_cpu_source(plan);
    CHECK(contains(text, "struct Begun") == row.two);
    CHECK(contains(text, "complete(begin(x, t), x, t);") == row.two);
    CHECK_FALSE(contains(generate_gpu_source(plan), "struct Begun"));
  }
}

TEST_CASE("float32 lists have one part, and so have long bodies") {
  const MemoryList<float> floats("floats", {{1, 2, 3}});
  Writer plain(DType::float32);
  const int slot = plain.add(floats);
  const ValueId sum =
      plain.apply(OpCode::add, {plain.load(slot), plain.number(1)});
  plain.store(slot, plain.apply(OpCode::sqrt, {sum}));
  CHECK_FALSE(contains(generate_cpu_source(plain.plan()), "struct Begun"));

  for (const int additions : {63, 64}) {
    CAPTURE(additions);
    const Words a = list_of("a", 3, 1);
    Writer writer;
    const int sa = writer.add(a);
    ValueId value = writer.load(sa);
    for (int k = 0; k < additions; ++k)
      value = writer.apply(OpCode::add, {value, writer.number(1)});
    writer.store(sa, writer.apply(OpCode::sqrt, {value}));
    const Plan plan = writer.plan();
    CHECK(ElementParts(plan.bodies[0]).two() == (additions == 63));
  }
}

TEST_CASE("tensors of any length are computed in two parts") {
  for (std::int64_t length = 0; length <= 200; ++length) {
    CAPTURE(length);
    Words a = list_of("a", length, 1), b = list_of("b", length, 4),
          c = list_of("c", length, 2);
    const auto before = c.values();
    Writer writer;
    write_sum_and_root(writer, writer.add(a), writer.add(b), writer.add(c));
    run(writer, writer.plan());
    for (std::size_t i = 0; i < std::size_t(length); ++i) {
      const double sum = double(1 + i % 60) + double(4 + i % 60);
      REQUIRE(number_of(a.values()[0][i]) == sum);
      // The square is rounded to 8 bits, its root is exact again only now and then:
      // rounded in plain doubles.
      const auto rounded = [](double value) {
        int exponent = 0;
        const double fraction = std::frexp(value, &exponent);
        return std::ldexp(std::nearbyint(std::ldexp(fraction, 8)),
                          exponent - 8);
      };
      const double root = rounded(std::sqrt(rounded(sum * sum)));
      REQUIRE(number_of(c.values()[0][i]) ==
              rounded(number_of(before[0][i]) + rounded(root / 2)));
    }
  }
}
