// Random programs, compiled, interpreted and run one operation at a time; all
// three must give the bits of plain loops over single elements, and each
// operation what its row promises about its own operands.
//
//   FUSEBOOK_FUZZ=10000         that many programs, new ones at every run
//   FUSEBOOK_FUZZ_SEED=SEED     the one program with that seed
//
// Its last test case is only run when it is asked for, with
// FUSEBOOK_KEEP_SOURCE=FOLDER: it leaves the programs' sources there.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "fusebook/compile/compile.h"
#include "fusebook/compile/run_eagerly.h"
#include "fusebook/cuda_sim/gpu_sim_block.h"
#include "fusebook/foreach/foreach.h"
#include "fusebook/foreach/reductions.h"
#include "fusebook/ops/element.h"
#include "fusebook/ops/reductions.h"
#include "fusebook/runtime/parallel.h"
#include "support/broadcast_testing.h"
#include "support/exact_values.h"
#include "support/reduction_order.h"
#include "support/reference.h"
#include "support/sanitized.h"
#include "support/sim_device.h"
#include "support/strided_testing.h"
#include "support/testing.h"

using namespace fuse;
using testing::any_value;
using testing::Lie;
using testing::odd_sim_devices;
using testing::OtherSimDevice;
using testing::Placement;
using testing::Random;
using testing::same_value;
using testing::sanitized;

namespace {

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

constexpr int most_threads = 64;
const std::vector<int> thread_counts =
    sanitized ? std::vector{1, 3, most_threads}
              : std::vector{1, 2, 3, 8, most_threads};
/// One program in so many has the size below.
constexpr int large_every = sanitized ? 1024 : 256;
/// A launch of so many elements has work for all of them.
constexpr std::int64_t size_for_all = most_threads * 16384;

/// A program without its data.
struct Script {
  std::vector<Register> registers;  // those in memory come first
  int in_memory = 0;
  std::vector<Step> steps;
};

/// What an operation gives: elements in the type that those of its operands
/// meet in, or one float64 a tensor.
Register result_of(const std::vector<Register>& registers, const Step& step) {
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

std::string describe(const Script& script) {
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

/// Elements of all tensors of a list, as doubles.
using Values = std::vector<std::vector<double>>;

/// Tensors at odd addresses, with bytes between them that must not change.
class Memory {
 public:
  /// `lies` is a source of its own, so that data are the same however they lie.
  Memory(const std::vector<std::int64_t>& sizes,
         const std::vector<Shape>& shapes, DType dtype, Lie lie, Random& random,
         Random& lies)
      : dtype_(dtype), sizes_(sizes) {
    std::size_t end = 0;
    for (const Shape& shape : shapes) {
      end += std::size_t(1 + random.below(16));
      offsets_.push_back(end);
      places_.emplace_back(shape, lie, lies);
      end += places_.back().room() * size_of(dtype);
    }
    bytes_.assign(end + 16, guard);
    owned_.assign(end + 16, 0);
    for (std::size_t e = 0; e < sizes.size(); ++e) {
      for (std::int64_t i = 0; i < sizes[e]; ++i) {
        set(e, std::size_t(i), random);
      }
    }
    initial_ = bytes_;
  }

  Tensor tensor(std::size_t e) {
    return places_[e].tensor(bytes_.data() + offsets_[e], dtype_);
  }
  void reset() { std::copy(initial_.begin(), initial_.end(), bytes_.begin()); }
  /// Whether some tensor lies where its elements are not aligned.
  bool is_unaligned() const {
    for (std::size_t e = 0; e < sizes_.size(); ++e) {
      const auto at =
          reinterpret_cast<std::uintptr_t>(bytes_.data() + offsets_[e]);
      if (sizes_[e] > 0 && at % size_of(dtype_) != 0) return true;
    }
    return false;
  }

  Values values() const {
    Values result;
    for (std::size_t e = 0; e < sizes_.size(); ++e) {
      result.emplace_back();
      for (std::int64_t i = 0; i < sizes_[e]; ++i) {
        result[e].push_back(get(e, std::size_t(i)));
      }
    }
    return result;
  }

  bool guards_hold() const {
    for (std::size_t at = 0; at < bytes_.size(); ++at) {
      if (owned_[at] == 0 && bytes_[at] != guard) return false;
    }
    return true;
  }

 private:
  static constexpr unsigned char guard = 0xa5;

  std::size_t place_of(std::size_t e, std::size_t i) const {
    return offsets_[e] + places_[e].at(i) * size_of(dtype_);
  }

  void set(std::size_t e, std::size_t i, Random& random) {
    const std::size_t place = place_of(e, i);
    unsigned char* const to = bytes_.data() + place;
    std::fill_n(owned_.begin() + std::ptrdiff_t(place), size_of(dtype_), 1);
    const double value = reduced::any_value(dtype_, random);
    with_type(dtype_, [&](auto type) {
      store_element(to, 0, static_cast<decltype(type)>(value));
    });
  }
  double get(std::size_t e, std::size_t i) const {
    const unsigned char* const from = bytes_.data() + place_of(e, i);
    return with_type(dtype_, [&](auto type) {
      return double(load_element<decltype(type)>(from, 0));
    });
  }

  DType dtype_;
  std::vector<std::int64_t> sizes_;
  std::vector<std::size_t> offsets_;
  std::vector<Placement> places_;
  std::vector<unsigned char> owned_;  // of each byte: part of an element
  std::vector<unsigned char> bytes_;
  std::vector<unsigned char> initial_;
};

/// How often the bound of each operation was put to a test, by its type.
using BoundCounts = std::map<std::pair<OpCode, DType>, long>;

struct Expression {
  OpCode op{};
  int a = 0;  // the number or tensor of this index
  int b = 0;
  bool a_is_tensor = false;
};

/// Which script a seed stands for. Some have the structure of their neighbour
/// and share its code; which, the seed alone decides.
std::uint64_t script_seed(std::uint64_t seed) {
  return seed % 6 == 0 ? seed - 1 : seed;
}

/// A script with data to run on.
class Case {
 public:
  Case(std::uint64_t seed, const Script& script)
      : seed_(seed),
        script_(script),
        random_(seed ^ 0x5eed),
        lies_(seed ^ 0x11e5) {
    choose_sizes();
    choose_lies();
    for (int r = 0; r < script_.in_memory; ++r) add_list(r);
    for (int k = 0; k < number_count; ++k) {
      numbers_.push_back(any_value<double>(random_));
      tensors_.push_back(tensor(any_value<double>(random_),
                                DType(random_.below(dtype_count))));
      expressions_.push_back(
          {std::array{OpCode::add, OpCode::sub, OpCode::mul,
                      OpCode::div}[std::size_t(random_.below(4))],
           random_.below(number_count), random_.below(number_count),
           random_.chance(0.3)});
    }
    for (Memory& memory : memories_) initial_.push_back(memory.values());
  }

  std::uint64_t seed() const { return seed_; }
  const Script& script() const { return script_; }

  void reset() {
    results_.clear();
    for (Memory& memory : memories_) memory.reset();
  }

  /// The script through the library's functions.
  void play() {
    std::vector<TensorList> registers = lists_;
    for (const Step& step : script_.steps) {
      if (is_reduction(step.op)) {
        registers.push_back(
            play_reduction(step.op, registers[std::size_t(step.in[0].index)]));
        continue;
      }
      std::vector<Operand> operands;
      for (const Input& in : step.in) {
        operands.push_back(operand(in, registers));
      }
      std::vector<const Operand*> pointers;
      for (const Operand& each : operands) pointers.push_back(&each);
      if (step.target >= 0) {
        foreach_apply_(step.op, registers[std::size_t(step.target)], pointers,
                       std::source_location::current());
      } else {
        registers.push_back(
            foreach_apply(step.op, pointers, std::source_location::current()));
      }
    }
    for (std::size_t r = lists_.size(); r < registers.size(); ++r) {
      if (script_.registers[r].kept) results_.push_back(registers[r]);
    }
  }

  /// What must be in memory and in the results after `play`.
  const std::vector<Values>& expected() {
    if (expected_.empty()) expected_ = compute_expected();
    return expected_;
  }

  std::vector<Values> actual() const {
    std::vector<Values> all;
    for (const Memory& memory : memories_) all.push_back(memory.values());
    patch_views(all);
    for (const TensorList& list : results_) {
      all.emplace_back();
      for (const Tensor& each : list) all.back().push_back(each.to_vector());
    }
    return all;
  }

  const std::vector<std::int64_t>& sizes() const { return sizes_; }
  /// Whether an element of some tensor stands at several places.
  bool repeats() const { return has_small() && small_sizes_ != sizes_; }
  const std::vector<TensorList>& lists() const { return lists_; }
  const std::vector<Lie>& register_lies() const { return register_lies_; }
  const std::vector<Values>& initial() const { return initial_; }
  const BoundCounts& bounds() const { return bounds_; }
  bool is_unaligned() const {
    return std::any_of(
        memories_.begin(), memories_.end(),
        [](const Memory& memory) { return memory.is_unaligned(); });
  }

  bool guards_hold() const {
    return std::all_of(
        memories_.begin(), memories_.end(),
        [](const Memory& memory) { return memory.guards_hold(); });
  }

 private:
  void choose_sizes() {
    static const std::vector<std::int64_t> usual = {
        0,  1,  1,  2,  3,  4,   5,   7,   8,   9,    15,
        16, 17, 31, 63, 64, 100, 511, 512, 513, 1000, 1025};
    const int count = random_.chance(0.05) ? 0 : 1 + random_.below(4);
    for (int e = 0; e < count; ++e) sizes_.push_back(random_.pick(usual));
    // Enough to see each operation's bound at work.
    if (count > 1 && *std::max_element(sizes_.begin(), sizes_.end()) < 100) {
      sizes_.back() = 100 + random_.below(30);
    }
    if (count > 0 && random_.chance(0.08)) {
      sizes_[0] = 15000 + random_.below(20000);
    }
    // Enough for a share of its own for each of the most threads.
    if (count > 0 && seed_ % large_every == 0) sizes_[0] = size_for_all;
  }

  // In most programs all lists are contiguous. In the others each lies as it
  // likes, or all in the same way. Neighbours with one script agree on it.
  void choose_lies() {
    Random random(script_seed(seed_) ^ 0x57a1d);
    const bool all_large = seed_ % (2 * large_every) == 0;
    const bool strided = random.chance(0.3) || all_large;
    const Lie common = Lie(random.below(testing::lie_count));
    const bool alike = random.chance(0.3);
    for (int r = 0; r < script_.in_memory; ++r) {
      const Lie own = Lie(random.below(testing::lie_count));
      register_lies_.push_back(!strided ? Lie::contiguous
                               : alike  ? common
                                        : own);
    }
    const bool broadcasts = has_small();
    for (const std::int64_t n : sizes_) {
      shapes_.push_back(strided || broadcasts ? testing::any_shape(n, lies_)
                                              : Shape{n});
      if (broadcasts) choose_small_shape(shapes_.back());
    }
  }

  bool has_small() const {
    return std::any_of(script_.registers.begin(), script_.registers.end(),
                       [](const Register& reg) { return reg.is_small; });
  }

  // One that broadcasts: without some of the first dimensions, others of size 1.
  void choose_small_shape(const Shape& shape) {
    const auto gone = std::ptrdiff_t(lies_.below(int(shape.size())));
    small_shapes_.emplace_back(shape.begin() + gone, shape.end());
    for (std::int64_t& size : small_shapes_.back()) {
      if (lies_.chance(0.4)) size = 1;
    }
    small_sizes_.push_back(broadcast_testing::numel_of(small_shapes_.back()));
  }

  void add_list(int r) {
    const Register& reg = script_.registers[std::size_t(r)];
    const bool scalar = reg.rate == Rate::entry;
    const auto sizes = scalar ? std::vector<std::int64_t>(sizes_.size(), 1)
                       : reg.is_small ? small_sizes_
                                      : sizes_;
    const auto shapes = scalar         ? std::vector<Shape>(sizes_.size())
                        : reg.is_small ? small_shapes_
                                       : shapes_;
    memories_.emplace_back(sizes, shapes, reg.dtype,
                           register_lies_[std::size_t(r)], random_, lies_);
    std::vector<Tensor> list;
    for (std::size_t e = 0; e < sizes.size(); ++e) {
      const bool shared = reg.is_view && e % 2 == 0;
      Memory& memory = shared ? memories_.front() : memories_.back();
      list.push_back(memory.tensor(e));
    }
    const std::string label = "r" + std::to_string(r);
    lists_.push_back(
        scalar ? TensorList::per_tensor(std::move(list), label.c_str())
               : TensorList(std::move(list), label.c_str()));
  }

  // A view's even tensors are those of the first list.
  void patch_views(std::vector<Values>& all) const {
    for (std::size_t r = 0; r < lists_.size(); ++r) {
      if (!script_.registers[r].is_view) continue;
      for (std::size_t e = 0; e < sizes_.size(); e += 2) all[r][e] = all[0][e];
    }
  }

  Scalar scalar(const Input& in) const {
    const auto k = std::size_t(in.index);
    if (in.kind == Kind::number) return numbers_[k];
    if (in.kind == Kind::tensor) return tensors_[k];
    const Expression& x = expressions_[k];
    const Scalar a = scalar({x.a_is_tensor ? Kind::tensor : Kind::number, x.a});
    return scalar_op(x.op, a, numbers_[std::size_t(x.b)]);
  }

  double number(const Input& in) const {
    const auto k = std::size_t(in.index);
    if (in.kind == Kind::number) return numbers_[k];
    if (in.kind == Kind::tensor) return tensors_[k].item();
    const Expression& x = expressions_[k];
    const double a = number({x.a_is_tensor ? Kind::tensor : Kind::number, x.a});
    return reference::apply<double>(x.op,
                                    {a, numbers_[std::size_t(x.b)], 0, 0});
  }

  Operand operand(const Input& in, const std::vector<TensorList>& registers) {
    if (in.kind != Kind::list) return scalar(in);
    const TensorList& list = registers[std::size_t(in.index)];
    // Another handle to the same tensors is the same list.
    const bool elements =
        script_.registers[std::size_t(in.index)].rate == Rate::element;
    if (in.index < script_.in_memory && elements && seed_ % 5 == 0) {
      return TensorList(list.impl()->tensors);
    }
    return list;
  }

  static TensorList play_reduction(OpCode op, const TensorList& list) {
    switch (op) {
      case OpCode::sum:
        return foreach_sum(list);
      case OpCode::sum_of_squares:
        return foreach_norm(list);
      case OpCode::total_sum:
        return foreach_add(list, total_norm(list, 1));
      case OpCode::total_sum_of_squares:
        return foreach_add(list, total_norm(list));
      default:
        return foreach_add(list, all_finite(list));
    }
  }

  // What a reduction takes of an element, and makes of the number.
  static double term(OpCode op, double x) {
    switch (op) {
      case OpCode::sum:
        return x;
      case OpCode::total_sum:
        return std::fabs(x);
      case OpCode::total_amax:
        return std::isfinite(x) ? 0 : 1;
      default:
        return x * x;
    }
  }
  static double last(OpCode op, double x) {
    if (op == OpCode::total_amax) return x == 0 ? 1 : 0;
    return per_tensor(op) == OpCode::sum ? x : std::sqrt(x);
  }

  static Values compute_reduction(const Step& step, DType dtype,
                                  const Values& list) {
    using namespace reduction_order;
    std::vector<double> sums;
    for (std::vector<double> values : list) {
      for (double& x : values) x = term(step.op, x);
      sums.push_back(join_elements(values, add, 0));
    }
    Values result = list;
    if (is_total(step.op)) {
      const double total = last(step.op, join_numbers(sums, add, 0));
      for (auto& values : result) {
        for (double& x : values) {
          x = reduced::round(
              dtype, reference::apply(OpCode::add, dtype, {x, total, 0, 0}));
        }
      }
    } else {
      for (std::size_t e = 0; e < sums.size(); ++e) {
        result[e] = {last(step.op, sums[e])};
      }
    }
    return result;
  }

  std::vector<Values> compute_expected() {
    std::vector<Values> registers = initial_;
    patch_views(registers);
    for (const Step& step : script_.steps) {
      if (is_reduction(step.op)) {
        const auto& of = registers[std::size_t(step.in[0].index)];
        registers.push_back(compute_reduction(
            step, result_of(script_.registers, step).dtype, of));
        continue;
      }
      const Register* const target =
          step.target >= 0 ? &script_.registers[std::size_t(step.target)]
                           : nullptr;
      Values result = compute(step, registers, target);
      if (target != nullptr) {
        registers[std::size_t(step.target)] = std::move(result);
      } else {
        registers.push_back(std::move(result));
      }
    }
    std::vector<Values> all(registers.begin(),
                            registers.begin() + script_.in_memory);
    patch_views(all);
    for (std::size_t r = all.size(); r < registers.size(); ++r) {
      if (script_.registers[r].kept) all.push_back(registers[r]);
    }
    return all;
  }

  // One operation, element by element, in the type its operands call for, and
  // rounded to the type it is stored in.
  Values compute(const Step& step, const std::vector<Values>& registers,
                 const Register* target) {
    const auto [rate, dtype, kept, is_view, is_small] =
        result_of(script_.registers, step);
    const bool small = is_small && target == nullptr;
    const Rate shape = target != nullptr ? target->rate : rate;
    const DType storage = target != nullptr ? target->dtype : dtype;
    Values result;
    for (std::size_t e = 0; e < sizes_.size(); ++e) {
      const std::int64_t n = shape != Rate::element ? 1
                             : small                ? small_sizes_[e]
                                                    : sizes_[e];
      result.emplace_back();
      for (std::int64_t i = 0; i < n; ++i) {
        std::array<double, 4> x{};
        for (std::size_t k = 0; k < step.in.size(); ++k) {
          x[k] = value(step.in[k], registers, e, std::size_t(i), small);
        }
        const double plain = reference::apply(step.op, dtype, x);
        if (i % bound_stride(n) == 0) check_bound(step.op, dtype, x, plain);
        result[e].push_back(reduced::round(storage, plain));
      }
    }
    return result;
  }

  // Of large tensors a sample will do.
  static std::int64_t bound_stride(std::int64_t n) { return 1 + n / 2000; }

  // The bits that every mode must give against numbers of higher precision.
  void check_bound(OpCode op, DType dtype, const std::array<double, 4>& x,
                   double result) {
    const exact_values::Verdict verdict =
        dtype == DType::float64 ? judge<double>(op, x, result)
        : is_reduced(dtype)     ? reduced::judge(dtype, op, x, result)
                                : judge<float>(op, x, result);
    if (verdict == exact_values::Verdict::holds) ++bounds_[{op, dtype}];
    if (verdict != exact_values::Verdict::fails) return;
    FAIL("FUSEBOOK_FUZZ_SEED=" << seed_ << ": " << name_of(op) << "(" << x[0]
                               << ", " << x[1] << ", " << x[2] << ", " << x[3]
                               << ") in " << name_of(dtype) << " is " << result
                               << ", beyond the bound of its row");
  }

  template <class T>
  static exact_values::Verdict judge(OpCode op, const std::array<double, 4>& x,
                                     double result) {
    return exact_values::judge<T>(op, {T(x[0]), T(x[1]), T(x[2]), T(x[3])},
                                  T(result));
  }

  double value(const Input& in, const std::vector<Values>& registers,
               std::size_t e, std::size_t i, bool small) const {
    if (in.kind != Kind::list) return number(in);
    const auto r = std::size_t(in.index);
    const bool elements = script_.registers[r].rate == Rate::element;
    if (script_.registers[r].is_small && !small) {
      i = broadcast_testing::place_in(small_shapes_[e], shapes_[e],
                                      std::int64_t(i));
    }
    return registers[r][e][elements ? i : 0];
  }

  std::uint64_t seed_;
  Script script_;
  Random random_;
  Random lies_;
  std::vector<std::int64_t> sizes_;
  std::vector<Shape> shapes_;
  std::vector<std::int64_t> small_sizes_;  // of lists that broadcast
  std::vector<Shape> small_shapes_;
  std::vector<Lie> register_lies_;
  std::vector<Memory> memories_;
  std::vector<TensorList> lists_;
  std::vector<double> numbers_;
  std::vector<Tensor> tensors_;
  std::vector<Expression> expressions_;
  std::vector<TensorList> results_;
  std::vector<Values> initial_;
  std::vector<Values> expected_;
  BoundCounts bounds_;
};

/// Cases that become one kernel.
class Batch {
 public:
  explicit Batch(const std::vector<std::uint64_t>& seeds) {
    for (const std::uint64_t seed : seeds) {
      cases_.push_back(
          std::make_unique<Case>(seed, ScriptMaker(script_seed(seed)).make()));
    }
  }

  /// One run that compiles nothing, but generates the source.
  void generate() { interpreted_(); }

  /// The first run, in which the kernel is compiled.
  void warm_up() {
    reset();
    compiled_();
    reset();
    simulated()();
  }

  void check(int threads) {
    set_thread_count(threads);
    // A GPU's code knows nothing of threads of ours: other orders instead.
    set_sim_order(SimOrder(threads % 3), std::uint64_t(threads));
    if (threads <= 3) check_simulated(std::size_t(threads));
    check_mode("eager", [&] { play(); });
    check_mode("interpreted", [&] { interpreted_(); });
    check_mode("replayed", [&] { replay_all(); });
    check_mode("compiled", [&] { compiled_(); });
  }

  const std::vector<std::unique_ptr<Case>>& cases() const { return cases_; }
  Counters counters() const { return compiled_.counters(); }

 private:
  struct Player {
    Batch* batch;
    void operator()() const { batch->play(); }
  };

  // Runs what was recorded one operation at a time.
  struct Replayer final : Executor {
    Replayer() { eager.set_eager(); }
    void execute(const Program& program) override { replay(program, eager); }
    void graph_break(const std::string& why) override { FAIL(why); }
    Function eager{{.backend = Backend::interpreted}};
  };

  Compiled<Player> simulated() {
    return compile(Player{this}, {.backend = Backend::simulated});
  }
  void check_simulated(std::size_t number) {
    const OtherSimDevice other(
        odd_sim_devices()[number % odd_sim_devices().size()]);
    auto step = simulated();
    check_mode("on a simulated GPU", [&] { step(); });
  }

  void play() {
    for (const auto& each : cases_) each->play();
  }
  void replay_all() {
    Replayer replayer;
    Recorder recorder(replayer, true);
    {
      const Recording recording(recorder);
      play();
    }
    recorder.finish();
  }
  void reset() {
    for (const auto& each : cases_) each->reset();
  }

  template <class Run>
  void check_mode(const std::string& mode, Run run) {
    reset();
    run();
    for (const auto& each : cases_) check_case(*each, mode);
  }

  static void check_case(Case& c, const std::string& mode) {
    const std::vector<Values>& expected = c.expected();
    const std::vector<Values> actual = c.actual();
    INFO("FUSEBOOK_FUZZ_SEED=" << c.seed() << ", " << mode << ", "
                               << thread_count() << " threads\n"
                               << describe(c.script()));
    REQUIRE(c.guards_hold());
    REQUIRE(actual.size() == expected.size());
    for (std::size_t list = 0; list < actual.size(); ++list) {
      REQUIRE(actual[list].size() == expected[list].size());
      for (std::size_t e = 0; e < actual[list].size(); ++e) {
        check_tensor(actual[list][e], expected[list][e], list, e);
      }
    }
  }

  static void check_tensor(const std::vector<double>& actual,
                           const std::vector<double>& expected,
                           std::size_t list, std::size_t e) {
    REQUIRE(actual.size() == expected.size());
    for (std::size_t i = 0; i < actual.size(); ++i) {
      if (same_value(actual[i], expected[i])) continue;
      FAIL("list " << list << ", tensor " << e << ", element " << i << " is "
                   << actual[i] << ", not " << expected[i]);
    }
  }

  std::vector<std::unique_ptr<Case>> cases_;
  Compiled<Player> compiled_ = compile(Player{this});
  Compiled<Player> interpreted_ =
      compile(Player{this}, {.backend = Backend::interpreted});
};

// Compiles on two threads: that is where the time goes.
void warm_up(std::vector<std::unique_ptr<Batch>>& batches) {
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t b = next++; b < batches.size(); b = next++) {
      batches[b]->warm_up();
    }
  };
  std::thread other(work);
  work();
  other.join();
}

/// What the programs of a run were made of.
class Coverage {
 public:
  void add(const Case& each) {
    add_steps(each.script());
    for (const std::int64_t n : each.sizes()) sizes_[n]++;
    for (const Values& list : each.initial()) {
      for (const auto& tensor : list) add_values(tensor);
    }
    if (each.is_unaligned()) ++unaligned_;
    for (const auto& [key, count] : each.bounds()) bounds_[key] += count;
    add_lies(each);
    if (each.repeats()) add_broadcasts(each.script());
  }

  void check() const {
    for (const OpCode op :
         {OpCode::sum, OpCode::sum_of_squares, OpCode::total_sum,
          OpCode::total_sum_of_squares, OpCode::total_amax}) {
      INFO(name_of(op));
      CHECK(forms_.count({op, false}) == 1);
    }
    check_broadcasts();
    check_operations();
    check_lies();
    check_sizes();
    CHECK(unaligned_ > 100);
    CHECK(pairs_.size() == 10);
    for (const DType from : reduced::all_dtypes) {
      for (const DType to : reduced::all_dtypes) {
        if (reduced::common_type({from, to}) != from) continue;
        INFO(std::string(name_of(from))
             << " into " << std::string(name_of(to)));
        CHECK(stores_.count({from, to}) == 1);
      }
    }
    for (const char* const kind :
         {"nan", "inf", "-inf", "-0", "0", "denormal", "-denormal"}) {
      INFO(kind);
      CHECK(values_.count(kind) == 1);
    }
  }

 private:
  // What is strided in fact: a small tensor may be contiguous, however it was
  // made.
  void add_lies(const Case& each) {
    bool strided = false;
    bool contiguous = false;
    bool many = false;
    for (std::size_t r = 0; r < each.lists().size(); ++r) {
      if (each.script().registers[r].rate != Rate::element) continue;
      const ListImpl& list = *each.lists()[r].impl();
      (list.layouts.empty() ? contiguous : strided) = true;
      if (list.layouts.empty()) continue;
      lies_[each.register_lies()[r]]++;
      for (const std::int64_t n : list.numels) many = many || n == size_for_all;
    }
    if (strided) (contiguous ? mixed_ : all_strided_)++;
    if (many) ++large_strided_;
  }

  // Where smaller tensors meet others: in new lists or in place, from memory or
  // computed by the same program.
  void add_broadcasts(const Script& script) {
    for (const Step& step : script.steps) {
      if (result_of(script.registers, step).is_small && step.target < 0)
        continue;
      for (const Input& in : step.in) {
        if (in.kind != Kind::list) continue;
        if (!script.registers[std::size_t(in.index)].is_small) continue;
        broadcasts_[{step.target >= 0, in.index < script.in_memory}]++;
        broadcast_operations_.insert(step.op);
      }
    }
  }

  void check_broadcasts() const {
    CHECK(broadcast_operations_.size() > 15);
    for (const bool in_place : {false, true}) {
      for (const bool from_memory : {false, true}) {
        INFO(in_place << ", " << from_memory);
        const auto at = broadcasts_.find({in_place, from_memory});
        CHECK(at != broadcasts_.end());
        if (at != broadcasts_.end()) CHECK(at->second > 3);
      }
    }
  }

  void check_lies() const {
    for (const Lie lie : {Lie::transposed, Lie::stepped, Lie::narrowed}) {
      INFO(int(lie));
      CHECK(lies_.count(lie) == 1);
      if (lies_.count(lie) == 1) CHECK(lies_.at(lie) > 50);
    }
    CHECK(mixed_ > 50);
    CHECK(all_strided_ > 50);
    CHECK(large_strided_ > 0);
  }

  void add_steps(const Script& script) {
    for (const Step& step : script.steps) {
      std::set<DType> met;
      for (const Input& in : step.in) {
        kinds_[{step.op, kind_of(script, in)}]++;
        if (kind_of(script, in) != 0) continue;
        met.insert(script.registers[std::size_t(in.index)].dtype);
      }
      if (met.size() == 2) pairs_.insert({*met.begin(), *met.rbegin()});
      const Register result = result_of(script.registers, step);
      rates_[{step.op, result.rate == Rate::element, result.dtype}]++;
      if (step.target < 0 || result.rate != Rate::element) continue;
      const Register& target = script.registers[std::size_t(step.target)];
      stores_.insert({result.dtype, target.dtype});
    }
    for (const Step& step : script.steps) {
      forms_[{step.op, step.target >= 0}]++;
    }
  }

  // Denormals are those of float32: they are numbers of both types.
  static const char* kind_of(double value) {
    if (std::isnan(value)) return "nan";
    if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
    const bool negative = std::signbit(value);
    if (value == 0) return negative ? "-0" : "0";
    if (std::fabs(value) >= 0x1p-126) return "ordinary";
    return negative ? "-denormal" : "denormal";
  }
  void add_values(const std::vector<double>& tensor) {
    for (const double value : tensor) values_[kind_of(value)]++;
  }

  // Empty, one element, around vectors and tiles, every tail, and one with work
  // for all threads.
  void check_sizes() const {
    for (const std::int64_t n :
         {std::int64_t(0), std::int64_t(1), std::int64_t(7), std::int64_t(9),
          std::int64_t(511), std::int64_t(513), size_for_all}) {
      INFO(n);
      CHECK(sizes_.count(n) == 1);
    }
    std::set<std::int64_t> tails;
    for (const auto& [n, count] : sizes_) tails.insert(n % 8);
    CHECK(tails.size() == 8);
  }

  void check_operations() const {
    for (int i = 0; i < op_count; ++i) {
      const auto op = OpCode(i);
      INFO(name_of(op));
      for (const DType dtype : reduced::all_dtypes) {
        INFO(name_of(dtype));
        CHECK(rates_.count({op, true, dtype}) == 1);
      }
      CHECK(rates_.count({op, false, DType::float64}) == 1);
      CHECK(forms_.count({op, true}) == 1);
      CHECK(forms_.count({op, false}) == 1);
      for (const DType dtype : reduced::all_dtypes) {
        INFO(std::string(name_of(dtype)));
        const auto tested = bounds_.find({op, dtype});
        CHECK(tested != bounds_.end());
        if (tested != bounds_.end()) CHECK(tested->second > 100);
      }
      // Elements, per-tensor scalars, and the three kinds of numbers; those
      // only where a list can stand beside them.
      const int kinds = info(op).arity > 1 || is_move(op) ? 5 : 2;
      for (int kind = 0; kind < kinds; ++kind) {
        INFO("operand of kind " << kind);
        CHECK(kinds_.count({op, kind}) == 1);
      }
    }
  }

  static int kind_of(const Script& script, const Input& in) {
    if (in.kind != Kind::list) return 1 + int(in.kind);
    const Register& reg = script.registers[std::size_t(in.index)];
    return reg.rate == Rate::element ? 0 : 1;
  }

  std::map<std::tuple<OpCode, bool, DType>, int> rates_;
  std::map<std::pair<OpCode, bool>, int> forms_;
  std::map<std::pair<OpCode, int>, int> kinds_;
  std::set<std::pair<DType, DType>> pairs_;   // that met as operands
  std::set<std::pair<DType, DType>> stores_;  // of a result into a list
  std::map<std::int64_t, int> sizes_;
  std::map<std::string, int> values_;
  BoundCounts bounds_;
  int unaligned_ = 0;
  std::map<Lie, int> lies_;  // of lists that are strided
  int mixed_ = 0;            // programs with strided lists and others
  int all_strided_ = 0;
  int large_strided_ = 0;
  std::map<std::pair<bool, bool>, int> broadcasts_;
  std::set<OpCode> broadcast_operations_;
};

std::uint64_t number_from(const char* variable, std::uint64_t otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

constexpr std::size_t in_a_batch = 25;

/// The seeds that every ordinary run has.
constexpr std::uint64_t first_seed = 1 << 20;

void run(const std::vector<std::uint64_t>& seeds, Coverage* coverage) {
  // A few batches at a time, so that memory stays small.
  constexpr std::size_t at_once = 40 * in_a_batch;
  for (std::size_t first = 0; first < seeds.size(); first += at_once) {
    const std::size_t last = std::min(first + at_once, seeds.size());
    std::vector<std::unique_ptr<Batch>> batches;
    for (std::size_t i = first; i < last; i += in_a_batch) {
      const auto begin = seeds.begin() + std::ptrdiff_t(i);
      const auto end =
          seeds.begin() + std::ptrdiff_t(std::min(i + in_a_batch, last));
      batches.push_back(
          std::make_unique<Batch>(std::vector<std::uint64_t>(begin, end)));
    }
    set_thread_count(1);
    warm_up(batches);
    for (auto& batch : batches) {
      for (const int threads : thread_counts) batch->check(threads);
      const Counters counters = batch->counters();
      REQUIRE(counters.compilations == 1);
      REQUIRE(counters.launches == 1 + std::int64_t(thread_counts.size()));
      REQUIRE(counters.graph_breaks == 0);
      if (coverage == nullptr) continue;
      for (const auto& each : batch->cases()) coverage->add(*each);
    }
  }
  set_thread_count(0);
}

}  // namespace

TEST_CASE("compiled, interpreted and eager have the bits of plain loops") {
  if (std::getenv("FUSEBOOK_FUZZ_SEED") != nullptr) {
    const std::uint64_t seed = number_from("FUSEBOOK_FUZZ_SEED", 0);
    std::printf("program %s\n%s", std::to_string(seed).c_str(),
                describe(ScriptMaker(script_seed(seed)).make()).c_str());
    run(script_seed(seed) == seed ? std::vector{seed}
                                  : std::vector{seed - 1, seed},
        nullptr);
    return;
  }
  const bool longer = std::getenv("FUSEBOOK_FUZZ") != nullptr;
  const std::size_t count = number_from("FUSEBOOK_FUZZ", 1000);
  REQUIRE(count >= 1000);
  const std::uint64_t first = longer
                                  ? std::uint64_t(std::random_device()()) << 20
                                  : number_from("TESTBASE", 1) << 20;
  std::printf("%zu random programs with seeds from FUSEBOOK_FUZZ_SEED=%s\n",
              count, std::to_string(first).c_str());
  std::vector<std::uint64_t> seeds;
  for (std::size_t i = 0; i < count; ++i) seeds.push_back(first + i);
  Coverage coverage;
  run(seeds, &coverage);
  coverage.check();
}

TEST_CASE("the sources of random programs are kept" * doctest::skip()) {
  REQUIRE(std::getenv("FUSEBOOK_KEEP_SOURCE") != nullptr);
  const std::size_t count = number_from("FUSEBOOK_FUZZ", 1000);
  for (std::size_t i = 0; i < count; i += in_a_batch) {
    std::vector<std::uint64_t> seeds;
    for (std::size_t k = i; k < std::min(i + in_a_batch, count); ++k) {
      seeds.push_back(first_seed + k);
    }
    Batch(seeds).generate();
  }
}
