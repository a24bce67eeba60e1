#include "fusebook/tensor/pointwise.h"

#include <algorithm>
#include <array>

#include "fusebook/device/run_at_once.h"
#include "fusebook/support/error.h"
#include "fusebook/tensor/tensor_list.h"

namespace fuse {
namespace {

const auto nowhere = std::source_location();

std::int32_t slot_of(Program& program, const TensorList& list) {
  return program.slot(list.impl()->view(), list.impl()->info());
}

}  // namespace

Term Term::apply(OpCode op, std::span<const Term> operands) {
  const auto known =
      std::find_if(operands.begin(), operands.end(),
                   [](const Term& each) { return each.program_ != nullptr; });
  if (known == operands.end()) {
    throw Error("pointwise: an operation needs at least one tensor");
  }
  Program& program = *known->program_;
  std::array<ValueId, 4> in{};
  for (std::size_t k = 0; k < operands.size(); ++k) {
    in[k] = operands[k].in(program);
  }
  const auto values = std::span(in).first(operands.size());
  return {program, program.apply(op, values, nowhere)};
}

ValueId Term::in(Program& program) const {
  return program_ != nullptr ? value_ : program.argument(number_, {});
}

void pointwise_into(const Tensor& target, const std::vector<Tensor>& inputs,
                    const Formula& formula) {
  check_callable(formula, "the formula");
  check_defined(target, "the target");
  for (const Tensor& input : inputs) check_defined(input, "an input");
  for (const Tensor& input : inputs) input.address(false);
  target.address(true);
  if (target.numel() == 0) return;
  std::vector<TensorList> lists;
  lists.push_back(TensorList({target}));
  for (const Tensor& input : inputs) lists.push_back(TensorList({input}));
  Program program;
  std::vector<Term> terms;
  for (std::size_t k = 1; k < lists.size(); ++k) {
    const std::int32_t slot = slot_of(program, lists[k]);
    terms.emplace_back(program, program.load(slot, nowhere));
  }
  const ValueId result = formula(terms).in(program);
  program.store(slot_of(program, lists[0]), result, nowhere);
  run_at_once(program);
}

Tensor pointwise(const std::vector<Tensor>& inputs, const Formula& formula) {
  if (inputs.empty()) throw Error("pointwise: no inputs were given");
  check_defined(inputs[0], "an input");
  Tensor result = empty_like(inputs[0]);
  pointwise_into(result, inputs, formula);
  return result;
}

}  // namespace fuse
