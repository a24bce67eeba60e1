// Random programs over lists: which operations on which operands.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "fusebook/ops/dtype.h"
#include "fusebook/ops/ops.h"
#include "fusebook/ops/reductions.h"
#include "support/reduced.h"
#include "support/testing.h"

namespace random_programs {

using namespace fuse;
using testing::Random;

/// Lists of tensors, lists of per-tensor scalars, and three kinds of numbers.
enum class Kind { list, number, tensor, expression };

/// An operand: a list by its register, or a number by its place among its kind.
struct Input {
  Kind kind = Kind::list;
  int index = 0;
};

/// target = op(in...), or a new register where target is -1. A reduction of a
/// list is added to its elements.
struct Step {
  OpCode op{};
  int target = -1;
  std::vector<Input> in;
};

/// What a register holds.
struct Register {
  Rate rate{};
  DType dtype{};
  bool kept = false;      // of a result: somebody still looks at it at the end
  bool is_view = false;   // shares some tensors with register 0
  bool is_small = false;  // its tensors broadcast to those of the others
};

constexpr int number_count = 3;

/// A program without its data.
struct Script {
  std::vector<Register> registers;  // those in memory come first
  int in_memory = 0;
  std::vector<Step> steps;
};

/// What an operation gives: elements in the type that those of its operands
/// meet in, or one float64 a tensor.
inline Register result_of(const std::vector<Register>& registers,
                          const Step& step) {
  if (is_reduction(step.op) && !is_total(step.op)) {
    return {Rate::entry, DType::float64};
  }
  std::vector<DType> elements;
  bool all_small = true;
  for (const Input& in : step.in) {
    if (in.kind != Kind::list) continue;
    const Register& reg = registers[std::size_t(in.index)];
    if (reg.rate != Rate::element) continue;
    elements.push_back(reg.dtype);
    all_small = all_small && reg.is_small;
  }
  if (elements.empty()) return {Rate::entry, DType::float64};
  return {Rate::element, reduced::common_type(elements), false, false,
          all_small};
}

/// Makes scripts in which every operation is legal.
class ScriptMaker {
 public:
  // Seeds in a row begin with three operations each, on each kind of operand in turn,
  // and later ones on each dtype in turn, so that no pair is left to luck.
  explicit ScriptMaker(std::uint64_t seed)
      : random_(seed),
        small_(seed ^ 0x5a11),
        reduced_(seed ^ 0x4ed),
        turn_(seed / input_kinds),
        last_input_(int(seed % input_kinds)),
        main_(DType((seed / input_kinds / op_count + seed % input_kinds) %
                    dtype_count)) {}

  Script make() {
    mixes_ = random_.chance(0.4);
    add_memory();
    if (has_view()) join_view();
    if (has_small()) add_small_steps();
    for (int k = 0; k < 3; ++k) {
      add_operation(OpCode((turn_ + k * op_count / 3) % op_count), last_input_);
    }
    // Most are short; some are long enough for values to take turns in buffers.
    const int steps = random_.below(random_.chance(0.15) ? 14 : 5);
    // What an early phase reads alone must not lie in a stored list.
    const bool reduces = !has_view() && reduced_.chance(0.2);
    for (int n = 0; n < steps; ++n) {
      if (reduces && reduced_.chance(0.5)) add_reduction();
      add_operation(any_op(), any_input);
    }
    for (Register& r : script_.registers) r.kept = random_.chance(0.4);
    return std::move(script_);
  }

 private:
  DType any_dtype() { return DType(random_.below(dtype_count)); }

  void add_memory() {
    const int lists = mixes_ ? 2 + random_.below(2) : 1 + random_.below(3);
    for (int k = 0; k < lists; ++k) {
      const bool other = k > 0 && (mixes_ || random_.chance(0.25));
      add_register(Rate::element, !other   ? main_
                                  : k == 1 ? DType(turn_ % dtype_count)
                                           : any_dtype());
    }
    if (random_.chance(0.15)) {
      add_register(Rate::element, script_.registers[0].dtype);
      script_.registers.back().is_view = true;
    }
    const int scalars = random_.below(3) + (last_input_ == 1 ? 1 : 0);
    for (int k = 0; k < scalars; ++k) add_register(Rate::entry, any_dtype());
    if (!has_view() && small_.chance(0.35)) {
      add_register(Rate::element, main_);
      script_.registers.back().is_small = true;
    }
    script_.in_memory = int(script_.registers.size());
  }

  void add_register(Rate rate, DType dtype) {
    script_.registers.push_back({rate, dtype});
  }

  bool has_view() const {
    return std::any_of(script_.registers.begin(), script_.registers.end(),
                       [](const Register& reg) { return reg.is_view; });
  }

  bool has_small() const { return !small_lists(nullptr).empty(); }

  std::vector<int> small_lists(const DType* dtype) const {
    std::vector<int> found;
    for (int r = 0; r < int(script_.registers.size()); ++r) {
      const Register& reg = script_.registers[std::size_t(r)];
      const bool fits = dtype == nullptr || reg.dtype == *dtype;
      if (reg.is_small && fits) found.push_back(r);
    }
    return found;
  }

  // Operations on smaller tensors alone, and numbers; per-tensor scalars belong
  // to the others.
  void add_small_steps() {
    for (int n = 1 + small_.below(3); n > 0; --n) {
      Step step;
      step.op = OpCode(small_.below(op_count));
      for (int k = 0; k < info(step.op).arity; ++k) {
        const bool list = k == 0 || small_.chance(0.5);
        step.in.push_back(
            list
                ? Input{Kind::list, small_.pick(small_lists(nullptr))}
                : Input{Kind(1 + small_.below(3)), small_.below(number_count)});
      }
      script_.registers.push_back(result_of(script_.registers, step));
      script_.steps.push_back(std::move(step));
    }
  }

  // Puts smaller tensors of the same dtype where others stand beside them.
  void make_small(Step& step) {
    for (std::size_t k = 0; k < step.in.size(); ++k) {
      const bool is_target = step.target >= 0 && k == 0 && !is_move(step.op);
      if (is_target || step.in[k].kind != Kind::list) continue;
      const Register& reg = script_.registers[std::size_t(step.in[k].index)];
      const auto lists = small_lists(&reg.dtype);
      if (reg.rate != Rate::element || lists.empty()) continue;
      if (!small_.chance(0.5)) continue;
      const Input before = step.in[k];
      step.in[k] = {Kind::list, small_.pick(lists)};
      if (step.target >= 0) continue;
      if (result_of(script_.registers, step).is_small) step.in[k] = before;
    }
  }

  // Lists that share tensors must meet, or they would run in any order.
  void join_view() {
    const auto& all = script_.registers;
    const auto view = std::find_if(all.begin(), all.end(),
                                   [](const auto& reg) { return reg.is_view; });
    const DType dtype = view->dtype;
    const Input second = {Kind::list, int(view - all.begin())};
    script_.steps.push_back({OpCode::add, -1, {{Kind::list, 0}, second}});
    add_register(Rate::element, dtype);
  }

  // Reading a view after the tensors it shares were stored is an error.
  bool may_read(int r) const {
    return !script_.registers[std::size_t(r)].is_view || !shared_stored_;
  }

  std::vector<int> lists_where(bool elements, const DType* dtype) {
    std::vector<int> found;
    for (int r = 0; r < int(script_.registers.size()); ++r) {
      const Register& reg = script_.registers[std::size_t(r)];
      if ((reg.rate == Rate::element) != elements || !may_read(r)) continue;
      if (reg.is_small) continue;
      if (dtype == nullptr || reg.dtype == *dtype) found.push_back(r);
    }
    return found;
  }

  Input number() {
    const auto kind = Kind(1 + random_.below(3));
    return {kind, random_.below(number_count)};
  }

  // An operand; elements only where allowed, and of one dtype unless they mix.
  Input input(bool elements_allowed, DType dtype) {
    const auto elements = lists_where(true, mixes_ ? nullptr : &dtype);
    const auto scalars = lists_where(false, nullptr);
    const double dice = random_.uniform(0, 1);
    if (elements_allowed && !elements.empty() && dice < 0.55) {
      return {Kind::list, random_.pick(elements)};
    }
    if (!scalars.empty() && dice < 0.75) {
      return {Kind::list, random_.pick(scalars)};
    }
    return number();
  }

  bool any_list(const Step& step) const {
    return std::any_of(step.in.begin(), step.in.end(),
                       [](const Input& in) { return in.kind == Kind::list; });
  }

  OpCode any_op() { return OpCode(random_.below(op_count)); }

  // Its last operand is of that kind, if there is one and it may stand there.
  void add_operation(OpCode op, int last) {
    Step step{op, -1, {}};
    random_.chance(0.5) || (is_move(op) && last > 0)
        ? fill_in_place(step, last)
        : fill_functional(step, last);
  }

  // Not the largest element: tensors may have none.
  void add_reduction() {
    static const std::vector<OpCode> all = {
        OpCode::sum, OpCode::sum_of_squares, OpCode::total_sum,
        OpCode::total_sum_of_squares, OpCode::total_amax};
    const auto lists = lists_where(true, nullptr);
    const Step step = {
        reduced_.pick(all), -1, {{Kind::list, reduced_.pick(lists)}}};
    script_.registers.push_back(result_of(script_.registers, step));
    script_.steps.push_back(step);
  }

  // One of kind 0, elements, to 4, an expression.
  Input input_of(int kind, bool elements_allowed, DType dtype) {
    if (kind >= 2) return {Kind(kind - 1), random_.below(number_count)};
    if (kind == 0 || kind == 1) {
      const auto lists = lists_where(kind == 0, mixes_ ? nullptr : &dtype);
      const bool fits = kind == 1 || elements_allowed;
      if (fits && !lists.empty()) return {Kind::list, random_.pick(lists)};
    }
    return input(elements_allowed, dtype);
  }

  void fill_functional(Step& step, int last) {
    const bool first = last != any_input;
    const bool elements = first ? last != 1 : random_.chance(0.75);
    const DType dtype = first ? main_ : pick_dtype();
    const int arity = info(step.op).arity;
    for (int k = 0; k + 1 < arity; ++k) {
      step.in.push_back(input_of(first && k == 0 ? int(last == 1) : any_input,
                                 elements, dtype));
    }
    const bool alone = arity == 1 && last >= 2;
    step.in.push_back(input_of(alone ? 0 : last, elements, dtype));
    if (!any_list(step)) return;
    if (result_of(script_.registers, step).rate == Rate::element) {
      make_small(step);
    }
    script_.registers.push_back(result_of(script_.registers, step));
    script_.steps.push_back(std::move(step));
  }

  DType pick_dtype() {
    const auto lists = lists_where(true, nullptr);
    return script_.registers[std::size_t(random_.pick(lists))].dtype;
  }

  void fill_in_place(Step& step, int last) {
    const bool first = last != any_input;
    const auto targets =
        lists_where(first || random_.chance(0.75), first ? &main_ : nullptr);
    if (targets.empty()) return;
    step.target = random_.pick(targets);
    const Register& to = script_.registers[std::size_t(step.target)];
    if (to.is_view) return;
    const bool elements = to.rate == Rate::element;
    const int arity = info(step.op).arity;
    if (is_move(step.op)) {
      step.in.push_back(input_of(last, elements, pick_dtype()));
    } else {
      step.in.push_back({Kind::list, step.target});
      for (int k = 1; k < arity; ++k) {
        step.in.push_back(k + 1 < arity ? input(elements, to.dtype)
                                        : input_of(last, elements, to.dtype));
      }
    }
    if (elements) make_small(step);
    shared_stored_ = shared_stored_ || step.target == 0;
    script_.steps.push_back(std::move(step));
  }

  static constexpr int input_kinds = 5;
  static constexpr int any_input = -1;

  Random random_;
  Random small_;  // of its own: other programs stay what they are
  Random reduced_;
  std::uint64_t turn_;
  int last_input_;  // the kind of its last operand
  DType main_;
  Script script_;
  bool mixes_ = false;
  bool shared_stored_ = false;
};

inline std::string describe(const Script& script) {
  std::ostringstream text;
  const auto name = [&](const Input& in) {
    static constexpr std::array letters = {"r", "number", "tensor", "expr"};
    return letters[std::size_t(in.kind)] + std::to_string(in.index);
  };
  for (std::size_t r = 0; r < script.registers.size(); ++r) {
    const Register& reg = script.registers[r];
    text << "r" << r << ": "
         << (reg.rate == Rate::element ? "elements" : "per tensor") << " "
         << name_of(reg.dtype) << (reg.is_view ? ", a view of r0" : "")
         << (reg.is_small ? ", broadcast" : "")
         << (int(r) < script.in_memory ? ""
             : reg.kept                ? ", kept"
                                       : ", dropped")
         << "\n";
  }
  int result = script.in_memory;
  for (const Step& step : script.steps) {
    text << "r" << (step.target >= 0 ? step.target : result++) << " = "
         << name_of(step.op) << "(";
    for (const Input& in : step.in) text << " " << name(in);
    text << " )" << (step.target >= 0 ? " in place" : "") << "\n";
  }
  return text.str();
}

}  // namespace random_programs
