// A program that compiles a function and links the room `compile` alone, without
// optimizers, options or recipes. compile_alone.py looks at what it is made of.

#include <cstdio>
#include <source_location>

#include "fusebook/compile/compile.h"
#include "fusebook/tensor/tensor_list.h"
#include "fusebook/trace/operands.h"
#include "fusebook/trace/recorder.h"

int main() {
  using namespace fuse;
  const Tensor tensor = full({4}, 20.0);
  const Operand values(TensorList({tensor}));
  const Operand two(2.0);
  auto step = compile([&] {
    const auto place = std::source_location::current();
    Recorder& recorder = *Recorder::current();
    const Operand* const operands[] = {&values, &two};
    const Operand sum(recorder.apply(OpCode::add, operands, place));
    const Operand* const twice[] = {&sum, &sum};
    recorder.apply_into(OpCode::add, values.list, twice, place);
  });
  step();
  std::printf("%g after %d launch\n", tensor.to_vector().front(),
              int(step.counters().launches));
}
