// A random program with data: what it does through the library, and what it must
// leave behind, computed by plain loops.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "fusebook/foreach/foreach.h"
#include "fusebook/foreach/reductions.h"
#include "ir/random_memory.h"
#include "ir/random_script.h"
#include "support/broadcast_testing.h"
#include "support/exact_values.h"
#include "support/reduction_order.h"
#include "support/reference.h"
#include "support/sanitized.h"

namespace random_programs {

using testing::any_value;
using testing::same_value;
using testing::sanitized;

constexpr int most_threads = 64;
/// One program in so many has the size below.
constexpr int large_every = sanitized ? 1024 : 256;
/// A launch of so many elements has work for all of them.
constexpr std::int64_t size_for_all = most_threads * 16384;

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
inline std::uint64_t script_seed(std::uint64_t seed) {
  return seed % 6 == 0 ? seed - 1 : seed;
}

/// A script with data to run on.
class Case {
 public:
  Case(std::uint64_t seed, const Script& script,
       const Device& device = cpu_device)
      : seed_(seed),
        device_(device),
        script_(script),
        random_(seed ^ 0x5eed),
        lies_(seed ^ 0x11e5) {
    choose_sizes();
    choose_lies();
    for (int r = 0; r < script_.in_memory; ++r) add_list(r);
    for (int k = 0; k < number_count; ++k) {
      numbers_.push_back(any_value<double>(random_));
      tensors_.push_back(
          tensor(any_value<double>(random_), DType(random_.below(dtype_count)))
              .to(k == 0 ? device : cpu_device));
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

  std::vector<Values> actual() {
    std::vector<Values> all;
    for (Memory& memory : memories_) {
      memory.fetch();
      all.push_back(memory.values());
    }
    patch_views(all);
    for (const TensorList& list : results_) {
      all.emplace_back();
      for (const Tensor& each : list) {
        all.back().push_back(each.cpu().to_vector());
      }
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
                           register_lies_[std::size_t(r)], random_, lies_,
                           device_);
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
  Device device_;
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

/// Fails unless all elements are what they must be.
inline void check_tensor(const std::vector<double>& actual,
                         const std::vector<double>& expected, std::size_t list,
                         std::size_t e) {
  REQUIRE(actual.size() == expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) {
    if (same_value(actual[i], expected[i])) continue;
    FAIL("list " << list << ", tensor " << e << ", element " << i << " is "
                 << actual[i] << ", not " << expected[i]);
  }
}

/// Fails unless the case, as `mode` ran it, has left what it must.
inline void check_case(Case& c, const std::string& mode) {
  const std::vector<Values>& expected = c.expected();
  const std::vector<Values> actual = c.actual();  // brings a device's bytes
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

/// What a variable of the environment says.
inline std::uint64_t number_from(const char* variable,
                                 std::uint64_t otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

/// So many cases become one kernel.
constexpr std::size_t in_a_batch = 25;

}  // namespace random_programs
