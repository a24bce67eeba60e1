#include "fusebook/compile/run_eagerly.h"

#include <doctest/doctest.h>

#include <array>
#include <string>
#include <vector>

#include "fusebook/compile/compiled_function.h"
#include "support/step_testing.h"

// Programs that list operations never make; those that they do make are
// replayed by random_program_test and policy_test.
using namespace fuse;

namespace {

using Values = std::vector<std::vector<double>>;

struct OneByOne final : Executor {
  OneByOne() { eager.set_eager(); }
  void execute(const Program& program) override {
    ++programs;
    eager.execute(program);
  }
  void graph_break(const std::string& why) override { FAIL(why); }

  int programs = 0;
  Function eager{{.backend = Backend::interpreted}};
};

TensorList list_of(const std::vector<std::vector<double>>& values) {
  std::vector<Tensor> tensors;
  for (const auto& each : values) {
    tensors.push_back(empty({std::int64_t(each.size())}));
    step_testing::assign(tensors.back(), each);
  }
  return TensorList(tensors);
}

Values values_of(const TensorList& list) {
  Values values;
  for (const Tensor& tensor : list) values.push_back(tensor.to_vector());
  return values;
}

std::int32_t slot(Program& program, const TensorList& list) {
  return program.slot(list.impl()->view(), list.impl()->info());
}

}  // namespace

TEST_CASE("two lists may change places") {
  const TensorList a = list_of({{1, 2, 3}, {4}});
  const TensorList b = list_of({{5, 6, 7}, {8}});
  Program program;
  const ValueId from_a = program.load(slot(program, a), {});
  const ValueId from_b = program.load(slot(program, b), {});
  program.store(slot(program, a), from_b, {});
  program.store(slot(program, b), from_a, {});
  OneByOne one;
  replay(program, one);
  CHECK(values_of(a) == Values{{5, 6, 7}, {8}});
  CHECK(values_of(b) == Values{{1, 2, 3}, {4}});
}

TEST_CASE("what a list held is there until it was read for the last time") {
  const TensorList a = list_of({{1, 2}});
  const TensorList b = list_of({{10, 20}});
  Program program;
  const ValueId old = program.load(slot(program, a), {});
  const std::array twice = {old, old};
  program.store(slot(program, a), program.apply(OpCode::add, twice, {}), {});
  const std::array both = {old, program.load(slot(program, b), {})};
  program.store(slot(program, b), program.apply(OpCode::add, both, {}), {});
  OneByOne one;
  replay(program, one);
  CHECK(values_of(a) == Values{{2, 4}});
  CHECK(values_of(b) == Values{{11, 22}});
  CHECK(one.programs == 3);  // the first sum waits in memory of its own
}

TEST_CASE("an operation writes where its result belongs") {
  const TensorList a = list_of({{1, 2}});
  Program program;
  const std::array in = {program.load(slot(program, a), {}),
                         program.constant(3, {})};
  program.store(slot(program, a), program.apply(OpCode::mul, in, {}), {});
  program.apply(OpCode::add, in, {});  // nothing needs it
  OneByOne one;
  replay(program, one);
  CHECK(values_of(a) == Values{{3, 6}});
  CHECK(one.programs == 1);
}

TEST_CASE("one value may go into two lists") {
  const TensorList a = list_of({{1, 2}});
  const TensorList b = list_of({{0, 0}});
  Program program;
  const std::array in = {program.load(slot(program, a), {}),
                         program.constant(0.5, {})};
  const ValueId sum = program.apply(OpCode::add, in, {});
  program.store(slot(program, a), sum, {});
  program.store(slot(program, b), sum, {});
  OneByOne one;
  replay(program, one);
  CHECK(values_of(a) == Values{{1.5, 2.5}});
  CHECK(values_of(b) == Values{{1.5, 2.5}});
}
