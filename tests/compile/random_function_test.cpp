// Random functions through foreach_map: eager, interpreted and compiled must
// give the bits of plain loops, and every operation must stay within its bound.
//
//   FUSEBOOK_FUZZ=10000         that many functions, new ones at every run
//   FUSEBOOK_FUZZ_SEED=SEED     the one function with that seed
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "fusebook/compile/compile.h"
#include "fusebook/foreach/foreach_map.h"
#include "fusebook/ops/element.h"
#include "support/broadcast_testing.h"
#include "support/exact_values.h"
#include "support/reference.h"
#include "support/strided_testing.h"
#include "support/testing.h"

using namespace fuse;
using testing::Lie;
using testing::Placement;
using testing::Random;
using testing::same_value;

namespace {

constexpr int max_depth = 12;
constexpr int max_operands = 6;
constexpr int max_outputs = 3;

enum class Kind { elements, per_tensor, repeated, number, tensor, result };
constexpr int operand_kinds = 5;

/// What is known of an operand or a result before there is any data.
struct Value {
  Kind kind = Kind::elements;
  Rate rate{};
  DType dtype{};
  int depth = 0;
  bool is_small = false;  // its tensors broadcast to those of the others
};

/// values[n] = op(values[in[0]], ...)
struct Step {
  OpCode op{};
  std::vector<int> in;
};

/// A function with what it is applied to, without data. The values are the
/// operands, then literals, then the results of the steps.
struct Script {
  std::vector<Value> values;
  int operands = 0;
  int literals = 0;
  int into = 0;  // so many operands are outputs; 0 makes new lists
  std::vector<Step> steps;
  std::vector<int> outputs;
};

class ScriptMaker {
 public:
  // Seeds in a row begin with each operation on each kind of operand in turn, so
  // that no pair is left to luck.
  explicit ScriptMaker(std::uint64_t seed)
      : random_(seed),
        small_(seed ^ 0x5a11),
        first_op_(OpCode(seed / operand_kinds % op_count)),
        last_kind_(Kind(seed % operand_kinds)) {}

  Script make() {
    main_ = any_dtype();
    mixes_ = random_.chance(0.3);
    add_operands();
    add_operation(first_op_, script_.operands - 1);
    const int steps = random_.below(random_.chance(0.3) ? 24 : 6);
    for (int n = 0; n < steps; ++n) add_step();
    choose_outputs();
    return std::move(script_);
  }

 private:
  // Code that rounds to 16 bits takes compilers longer.
  DType any_dtype() {
    return DType(random_.chance(0.4) ? 2 + random_.below(dtype_count - 2)
                                     : random_.below(2));
  }

  void add_operands() {
    const int count = 1 + random_.below(max_operands);
    if (random_.chance(0.5)) {
      script_.into = 1 + random_.below(std::min(count, max_outputs));
    }
    for (int k = 0; k < count; ++k) {
      const bool last = k + 1 == count;
      script_.values.push_back(
          operand(k, last ? last_kind_ : Kind(random_.below(operand_kinds))));
      Value& value = script_.values.back();
      const bool may_broadcast =
          k >= std::max(script_.into, 1) && value.kind == Kind::elements;
      value.is_small = may_broadcast && small_.chance(0.7);
    }
    script_.operands = count;
    script_.literals = 2;
    for (int k = 0; k < script_.literals; ++k) {
      script_.values.push_back({Kind::number, Rate::uniform, DType::float64});
    }
  }

  Value operand(int k, Kind kind) {
    // Outputs, and one operand at least, are lists.
    if (k < script_.into) kind = Kind(random_.chance(0.7) ? 0 : 1);
    if (k == 0) kind = Kind::elements;
    if (kind == Kind::elements || kind == Kind::repeated) {
      const bool other =
          k > 0 && (mixes_ || (k < script_.into && random_.chance(0.2)));
      return {kind, Rate::element, other ? any_dtype() : main_};
    }
    if (kind == Kind::per_tensor) return {kind, Rate::entry, any_dtype()};
    return {kind, Rate::uniform, any_dtype()};
  }

  bool may_read(const Value& value) const {
    return value.depth < max_depth &&
           (mixes_ || value.rate != Rate::element || value.dtype == main_);
  }

  int input() {
    const int count = int(script_.values.size());
    if (random_.chance(0.4) && may_read(script_.values.back())) {
      return count - 1;
    }
    for (;;) {
      const int pick =
          random_.below(random_.chance(0.2) ? script_.operands : count);
      if (may_read(script_.values[std::size_t(pick)])) return pick;
    }
  }

  // What computes on in another type than its operand.
  void add_conversion() {
    const int from = input();
    const Value& value = script_.values[std::size_t(from)];
    if (value.rate != Rate::element) return;
    const DType dtype = any_dtype();
    script_.values.push_back(
        {Kind::result, Rate::element, dtype, value.depth + 1, value.is_small});
    script_.steps.push_back({OpCode::cast, {from}});
  }

  void add_step() {
    if (mixes_ && random_.chance(0.3)) return add_conversion();
    const auto op = OpCode(random_.below(op_count));
    add_operation(op, input());
  }

  void add_operation(OpCode op, int first) {
    Step step{op, {}};
    Value result{Kind::result, Rate::uniform, DType::float64, 0};
    std::vector<DType> elements;
    bool all_small = true;
    bool any_entry = false;
    for (int k = 0; k < info(step.op).arity; ++k) {
      step.in.push_back(k == 0 ? first : input());
      const Value& from = script_.values[std::size_t(step.in.back())];
      result.rate = std::max(result.rate, from.rate);
      result.depth = std::max(result.depth, from.depth + 1);
      any_entry = any_entry || from.rate == Rate::entry;
      if (from.rate != Rate::element) continue;
      elements.push_back(from.dtype);
      all_small = all_small && from.is_small;
    }
    if (!elements.empty()) result.dtype = reduced::common_type(elements);
    result.is_small = !elements.empty() && all_small;
    // Per-tensor numbers belong to the larger tensors: lists of two shapes that
    // use them would take two launches.
    if (result.is_small && any_entry) return;
    // The function is written with operators on Elements: one at least.
    if (std::all_of(step.in.begin(), step.in.end(),
                    [&](int v) { return is_literal(v); })) {
      return;
    }
    script_.values.push_back(result);
    script_.steps.push_back(std::move(step));
  }

  bool is_literal(int v) const {
    return v >= script_.operands && v < script_.operands + script_.literals;
  }

  // A value that an output of that rate can take, new ones before others.
  int output(Rate least, Rate most) {
    for (int v = int(script_.values.size()) - 1 - random_.below(3); v >= 0;
         --v) {
      const Rate rate = script_.values[std::size_t(v)].rate;
      if (rate >= least && rate <= most) return v;
    }
    return 0;
  }

  void choose_outputs() {
    if (script_.into == 0) {
      const int count = 1 + random_.below(max_outputs);
      for (int k = 0; k < count; ++k) {
        script_.outputs.push_back(output(Rate::entry, Rate::element));
      }
    }
    for (int k = 0; k < script_.into; ++k) {
      const Rate rate = script_.values[std::size_t(k)].rate;
      const bool keep = rate == Rate::entry && random_.chance(0.3);
      script_.outputs.push_back(keep ? k : output(Rate::uniform, rate));
      // What was found may not fit: then it stays as it is.
      int& chosen = script_.outputs.back();
      if (script_.values[std::size_t(chosen)].rate > rate) chosen = k;
    }
  }

  Random random_;
  Random small_;  // of its own: other functions stay what they are
  OpCode first_op_;
  Kind last_kind_;  // of the last operand, unless it is the first or an output
  DType main_{};
  bool mixes_ = false;  // else elements meet in one dtype
  Script script_;
};

std::string describe(const Script& script) {
  static constexpr std::array kinds = {"elements", "per tensor", "one tensor",
                                       "number",   "0-d tensor", "result"};
  std::ostringstream text;
  const int leaves = script.operands + script.literals;
  for (int v = 0; v < leaves; ++v) {
    const Value& value = script.values[std::size_t(v)];
    text << "v" << v << ": " << kinds[std::size_t(value.kind)] << " "
         << name_of(value.dtype) << (v < script.into ? ", output" : "") << "\n";
  }
  for (std::size_t n = 0; n < script.steps.size(); ++n) {
    text << "v" << leaves + int(n) << " = " << name_of(script.steps[n].op);
    for (const int v : script.steps[n].in) text << " v" << v;
    text << ": " << name_of(script.values[std::size_t(leaves) + n].dtype)
         << "\n";
  }
  text << "outputs";
  for (const int v : script.outputs) text << " v" << v;
  return text.str() + "\n";
}

/// All elements of a list; one each where it holds one number a tensor.
using Values = std::vector<std::vector<double>>;

Values values_of(const TensorList& list) {
  Values values;
  for (const Tensor& each : list) values.push_back(each.to_vector());
  return values;
}

// The functions of ops.def as a recipe calls them.
Element call(OpCode op, const std::vector<Element>& x) {
#define CALL_1(name) name(x[0])
#define CALL_2(name) name(x[0], x[1])
#define CALL_3(name) name(x[0], x[1], x[2])
#define CALL_4(name) name(x[0], x[1], x[2], x[3])
  switch (op) {
#define OP(name, arity, ...) \
  case OpCode::name:         \
    return CALL_##arity(name);
#include "fusebook/ops/ops.def"
#undef OP
    default:
      throw Error("no such operation");
  }
#undef CALL_1
#undef CALL_2
#undef CALL_3
#undef CALL_4
}

/// A script with data to run on.
class Case {
 public:
  Case(std::uint64_t seed, Script script)
      : seed_(seed),
        script_(std::move(script)),
        random_(seed ^ 0x5eed),
        lies_(seed ^ 0x11e5) {
    choose_sizes();
    choose_shapes();
    const int leaves = script_.operands + script_.literals;
    for (int v = 0; v < leaves; ++v) add_leaf(v);
  }

  std::uint64_t seed() const { return seed_; }
  const Script& script() const { return script_; }

  void reset() {
    results_.clear();
    for (int v = 0; v < script_.operands; ++v) {
      const auto k = std::size_t(v);
      for (std::size_t e = 0; e < tensors_[k].size(); ++e) {
        write(blocks_[k][e], places_[k][e], initial_[k][e]);
      }
    }
  }

  /// One call of foreach_map or foreach_map_.
  void play() {
    using Play = void (Case::*)();
    static const auto table = [] {
      std::array<std::array<Play, max_outputs>, max_operands> all{};
      fill_table(all, std::make_index_sequence<max_operands * max_outputs>());
      return all;
    }();
    const auto n = std::size_t(script_.operands - 1);
    (this->*table[n][script_.outputs.size() - 1])();
  }

  /// The memory of all operands, then the new lists.
  std::vector<Values> actual() const {
    std::vector<Values> all;
    for (std::size_t k = 0; k < blocks_.size(); ++k) {
      all.emplace_back();
      for (std::size_t e = 0; e < blocks_[k].size(); ++e) {
        all.back().push_back(
            read(blocks_[k][e], places_[k][e], initial_[k][e].size()));
      }
    }
    for (const TensorList& list : results_) all.push_back(values_of(list));
    return all;
  }

  const std::vector<Values>& expected() {
    if (expected_.empty()) compute_expected();
    return expected_;
  }

  /// What the steps of an eager run gave.
  const std::vector<Operand>& traced() const { return traced_; }
  void check_traced() {
    expected();
    REQUIRE(traced_.size() == script_.steps.size());
    for (std::size_t n = 0; n < traced_.size(); ++n) {
      const std::size_t v = first_step() + n;
      if (!traced_[n].is_list || is_operand_itself(n)) continue;
      const Values got = values_of(traced_[n].list);
      check_equal(
          got, script_.values[v].is_small ? small_values(int(v)) : values_[v],
          "step", n);
    }
  }

  // What has the wanted dtype already may be overwritten by now.
  bool is_operand_itself(std::size_t n) const {
    const Step& step = script_.steps[n];
    const DType from = script_.values[std::size_t(step.in[0])].dtype;
    return step.op == OpCode::cast &&
           from == script_.values[first_step() + n].dtype;
  }

  static void check_equal(const Values& got, const Values& wanted,
                          const char* what, std::size_t number) {
    REQUIRE(got.size() == wanted.size());
    for (std::size_t e = 0; e < got.size(); ++e) {
      REQUIRE(got[e].size() == wanted[e].size());
      for (std::size_t i = 0; i < got[e].size(); ++i) {
        if (same_value(got[e][i], wanted[e][i])) continue;
        FAIL(what << " " << number << ", tensor " << e << ", element " << i
                  << " is " << got[e][i] << ", not " << wanted[e][i]);
      }
    }
  }

  /// Whether some element of an operand stands at several places.
  bool repeats() const { return has_small() && small_shapes_ != shapes_; }
  /// How many single results were held against their bound.
  std::int64_t bounded() const { return bounded_; }
  /// In what way operands are strided; those that are not are left out.
  std::vector<Lie> strided() const {
    std::vector<Lie> found;
    for (std::size_t k = 0; k < tensors_.size(); ++k) {
      const bool any =
          std::any_of(tensors_[k].begin(), tensors_[k].end(),
                      [](const Tensor& each) { return !each.is_contiguous(); });
      if (any) found.push_back(lie_of_[k]);
    }
    return found;
  }

 private:
  template <std::size_t... K>
  static void fill_table(auto& all, std::index_sequence<K...>) {
    ((all[K / max_outputs][K % max_outputs] =
          &Case::play_with<K / max_outputs + 1, K % max_outputs + 1>),
     ...);
  }

  template <std::size_t N, std::size_t M>
  void play_with() {
    play_sequence<M>(std::make_index_sequence<N>(),
                     std::make_index_sequence<M>());
  }

  template <std::size_t M, std::size_t... K, std::size_t... O>
  void play_sequence(std::index_sequence<K...>, std::index_sequence<O...>) {
    traced_.clear();
    const auto f = [this](const auto&... x) {
      const std::vector<Element> results = evaluate({Element(x)...});
      return std::array<Element, M>{results[O]...};
    };
    if (script_.into == 0) {
      const auto lists = foreach_map(f, operand(K)...);
      results_.assign(lists.begin(), lists.end());
    } else if constexpr (M <= sizeof...(K)) {
      play_into<M>(f, std::index_sequence<O...>(),
                   std::make_index_sequence<sizeof...(K) - M>());
    }
  }

  template <std::size_t M, class F, std::size_t... O, std::size_t... K>
  void play_into(const F& f, std::index_sequence<O...>,
                 std::index_sequence<K...>) {
    foreach_map_(f, Into<M>{{operand(O)...}}, operand(M + K)...);
  }

  std::vector<Element> evaluate(std::vector<Element> x) {
    for (int k = 0; k < script_.literals; ++k) {
      x.emplace_back(
          initial_[std::size_t(script_.operands) + std::size_t(k)][0][0]);
    }
    for (std::size_t n = 0; n < script_.steps.size(); ++n) {
      const Step& step = script_.steps[n];
      std::vector<Element> in;
      for (const int v : step.in) in.push_back(x[std::size_t(v)]);
      const DType dtype = script_.values[first_step() + n].dtype;
      x.push_back(step.op == OpCode::cast ? to(in[0], dtype)
                                          : call(step.op, in));
      traced_.push_back(x.back().operand());
    }
    std::vector<Element> results;
    for (const int v : script_.outputs) results.push_back(x[std::size_t(v)]);
    return results;
  }

  std::size_t first_step() const {
    return std::size_t(script_.operands) + std::size_t(script_.literals);
  }

  void choose_sizes() {
    static const std::vector<std::int64_t> usual = {0,  1,  2,  3,   7,  8,
                                                    16, 31, 64, 100, 513};
    const int count = 1 + random_.below(3);
    for (int e = 0; e < count; ++e) sizes_.push_back(random_.pick(usual));
    const bool equal = std::any_of(
        script_.values.begin(), script_.values.end(),
        [](const Value& value) { return value.kind == Kind::repeated; });
    if (equal) sizes_.assign(sizes_.size(), sizes_[0]);
  }

  // Tensors of one entry have one shape, also the one that is repeated.
  void choose_shapes() {
    strided_ = lies_.chance(0.3);
    for (std::size_t e = 0; e < sizes_.size(); ++e) {
      const bool again = e > 0 && sizes_[e] == sizes_[0];
      shapes_.push_back(again ? shapes_[0]
                        : strided_ || has_small()
                            ? testing::any_shape(sizes_[e], lies_)
                            : Shape{sizes_[e]});
      if (has_small()) small_shapes_.push_back(small_shape(shapes_[e]));
    }
  }

  bool has_small() const {
    return std::any_of(script_.values.begin(), script_.values.end(),
                       [](const Value& value) { return value.is_small; });
  }

  // One that broadcasts: without some of the first dimensions, others of size 1.
  Shape small_shape(const Shape& shape) {
    if (broadcast_testing::numel_of(shape) == 0) return shape;
    Shape small(shape.begin() + lies_.below(int(shape.size())), shape.end());
    for (std::int64_t& size : small) {
      if (lies_.chance(0.4)) size = 1;
    }
    return small;
  }

  std::size_t small_place(std::size_t e, std::size_t i) const {
    return broadcast_testing::place_in(small_shapes_[e], shapes_[e],
                                       std::int64_t(i));
  }

  // A value of the smaller shapes, which is computed for the larger ones here.
  Values small_values(int v) const {
    Values all;
    for (std::size_t e = 0; e < sizes_.size(); ++e) {
      all.emplace_back(broadcast_testing::numel_of(small_shapes_[e]));
      for (std::size_t i = 0; i < std::size_t(sizes_[e]); ++i) {
        all[e][small_place(e, i)] = at(v, e, i);
      }
    }
    return all;
  }

  void add_leaf(int v) {
    const Value& value = script_.values[std::size_t(v)];
    const bool elements = value.rate == Rate::element;
    const bool list =
        value.kind == Kind::elements || value.kind == Kind::per_tensor;
    Values numbers;
    for (std::size_t e = 0; e < (list ? sizes_.size() : 1); ++e) {
      numbers.emplace_back();
      const std::int64_t n = !elements ? 1
                             : value.is_small
                                 ? broadcast_testing::numel_of(small_shapes_[e])
                                 : sizes_[e];
      for (std::int64_t i = 0; i < n; ++i) {
        numbers[e].push_back(reduced::any_value(value.dtype, random_));
      }
    }
    initial_.push_back(numbers);
    if (v >= script_.operands) return;
    const Lie lie = strided_ && elements ? Lie(lies_.below(testing::lie_count))
                                         : Lie::contiguous;
    tensors_.emplace_back();
    blocks_.emplace_back();
    places_.emplace_back();
    lie_of_.push_back(lie);
    for (std::size_t e = 0; e < numbers.size(); ++e) {
      const Placement place(!elements        ? Shape{}
                            : value.is_small ? small_shapes_[e]
                                             : shapes_[e],
                            lie, lies_);
      Tensor block = empty({std::int64_t(place.room())}, value.dtype);
      tensors_.back().push_back(place.tensor(block.raw_data(), value.dtype));
      blocks_.back().push_back(std::move(block));
      places_.back().push_back(place);
    }
  }

  // What lies between the elements becomes a number that nothing computes.
  static void write(Tensor& block, const Placement& place,
                    const std::vector<double>& numbers) {
    block.fill_(untouched);
    with_type(block.dtype(), [&](auto type) {
      using T = decltype(type);
      for (std::size_t i = 0; i < numbers.size(); ++i) {
        static_cast<T*>(block.raw_data())[place.at(i)] =
            static_cast<T>(numbers[i]);
      }
    });
  }

  // The elements by hand; all others must be as they were.
  static std::vector<double> read(const Tensor& block, const Placement& place,
                                  std::size_t count) {
    std::vector<double> all = block.to_vector();
    std::vector<double> numbers;
    for (std::size_t i = 0; i < count; ++i) {
      numbers.push_back(std::exchange(all[place.at(i)], untouched));
    }
    REQUIRE(std::all_of(all.begin(), all.end(),
                        [](double x) { return x == untouched; }));
    return numbers;
  }

  MapOperand operand(std::size_t k) const {
    switch (script_.values[k].kind) {
      case Kind::elements:
        if (seed_ % 3 == 0) return tensors_[k];
        return TensorList(tensors_[k]);
      case Kind::per_tensor:
        return TensorList::per_tensor(tensors_[k]);
      case Kind::number:
        return initial_[k][0][0];
      default:
        return tensors_[k][0];
    }
  }

  double at(int v, std::size_t e, std::size_t i) const {
    const Value& value = script_.values[std::size_t(v)];
    const Values& all = values_[std::size_t(v)];
    const auto& tensor = all[value.kind == Kind::repeated ? 0 : e];
    if (value.is_small && v < script_.operands) i = small_place(e, i);
    return tensor[value.rate == Rate::element ? i : 0];
  }

  void compute_expected() {
    values_ = initial_;
    for (std::size_t v = 0; v < first_step(); ++v) {
      const Rate rate = script_.values[v].rate;
      if (rate == Rate::uniform) {
        values_[v].assign(sizes_.size(), initial_[v][0]);
      }
    }
    for (std::size_t n = 0; n < script_.steps.size(); ++n) {
      values_.push_back(
          compute(script_.steps[n], script_.values[first_step() + n]));
    }
    expected_ = initial_;
    expected_.resize(std::size_t(script_.operands));
    for (std::size_t k = 0; k < script_.outputs.size(); ++k) {
      const Values result = stored(script_.outputs[k], k);
      if (script_.into > 0) {
        expected_[k] = result;
      } else {
        expected_.push_back(result);
      }
    }
  }

  // A value as an output holds it.
  Values stored(int v, std::size_t k) const {
    const Value& from = script_.values[std::size_t(v)];
    const Value& to =
        script_.into > 0 ? script_.values[k] : script_.values[std::size_t(v)];
    // New lists of per-tensor numbers are float64.
    const DType dtype = script_.into == 0 && from.rate != Rate::element
                            ? DType::float64
                            : to.dtype;
    if (script_.into == 0 && from.is_small) return small_values(v);
    Values result;
    for (std::size_t e = 0; e < sizes_.size(); ++e) {
      result.emplace_back();
      const std::int64_t n = to.rate == Rate::element ? sizes_[e] : 1;
      for (std::int64_t i = 0; i < n; ++i) {
        const double x = at(v, e, std::size_t(i));
        result[e].push_back(reduced::round(dtype, x));
      }
    }
    return result;
  }

  Values compute(const Step& step, const Value& to) {
    const DType dtype = to.dtype;
    Values result;
    for (std::size_t e = 0; e < sizes_.size(); ++e) {
      result.emplace_back();
      const std::int64_t n = to.rate == Rate::element ? sizes_[e] : 1;
      for (std::int64_t i = 0; i < n; ++i) {
        std::array<double, 4> x{};
        for (std::size_t k = 0; k < step.in.size(); ++k) {
          x[k] = at(step.in[k], e, std::size_t(i));
        }
        if (step.op == OpCode::cast) {
          result[e].push_back(reduced::round(dtype, x[0]));
          continue;
        }
        result[e].push_back(reference::apply(step.op, dtype, x));
        check_bound(step.op, dtype, x, result[e].back());
      }
    }
    return result;
  }

  void check_bound(OpCode op, DType dtype, const std::array<double, 4>& x,
                   double result) {
    if (dtype == DType::float64) {
      check_bound<double>(op, dtype, x, result);
    } else {
      check_bound<float>(op, dtype, x, result);
    }
  }

  // Against the exact value at the operands it had.
  template <class T>
  void check_bound(OpCode op, DType dtype,
                   const std::array<double, 4>& operands, double result) {
    std::array<T, 4> x;
    for (std::size_t k = 0; k < 4; ++k) x[k] = T(operands[k]);
    const OpInfo& row = info(op);
    for (int k = 0; k < row.arity; ++k) {
      const bool fits = std::isfinite(x[std::size_t(k)]) &&
                        (row.domain == Domain::any || x[std::size_t(k)] > 0);
      if (!fits) return;
    }
    const auto wanted = exact_values::evaluate(op, x);
    if (!wanted.in_range) return;
    ++bounded_;
    const bool close = is_reduced(dtype)
                           ? reduced::is_close(dtype, result, wanted.value,
                                               wanted.term, row.ulp)
                           : exact_values::is_close(T(result), wanted.value,
                                                    wanted.term, row.ulp);
    if (close) return;
    FAIL_CHECK(row.name << " of " << double(x[0]) << ", " << double(x[1])
                        << ", " << double(x[2]) << ", " << double(x[3])
                        << " is " << double(result) << ", not "
                        << double(wanted.value));
  }

  static constexpr double untouched = 0x1.5p14;

  std::uint64_t seed_;
  Script script_;
  Random random_;
  Random lies_;
  bool strided_ = false;
  std::vector<std::int64_t> sizes_;
  std::vector<Shape> shapes_;
  std::vector<Shape> small_shapes_;           // of operands that broadcast
  std::vector<Values> initial_;               // of operands and literals
  std::vector<std::vector<Tensor>> tensors_;  // of operands
  std::vector<std::vector<Tensor>> blocks_;   // that they lie in
  std::vector<std::vector<Placement>> places_;
  std::vector<Lie> lie_of_;
  std::vector<Operand> traced_;
  std::vector<TensorList> results_;
  std::vector<Values> values_;
  std::vector<Values> expected_;
  std::int64_t bounded_ = 0;
};

/// Functions that become one kernel.
class Batch {
 public:
  explicit Batch(const std::vector<std::uint64_t>& seeds) {
    for (const std::uint64_t seed : seeds) {
      cases_.push_back(std::make_unique<Case>(seed, ScriptMaker(seed).make()));
    }
  }

  /// The first run, in which the kernel is compiled.
  void warm_up() {
    for (const auto& each : cases_) each->reset();
    compiled_();
  }

  void check() {
    run("eager", [&] { play(); });
    for (const auto& each : cases_) {
      INFO(label(*each, "eager"));
      each->check_traced();
    }
    auto interpreted =
        compile([&] { play(); }, {.backend = Backend::interpreted});
    run("interpreted", interpreted);
    run("compiled", compiled_);
    assert_fused(compiled_);
    CHECK(compiled_.counters().compilations == 1);
  }

  const std::vector<std::unique_ptr<Case>>& cases() const { return cases_; }

 private:
  struct Player {
    Batch* batch;
    void operator()() const { batch->play(); }
  };

  void play() {
    for (const auto& each : cases_) each->play();
  }

  static std::string label(const Case& c, const std::string& mode) {
    return "FUSEBOOK_FUZZ_SEED=" + std::to_string(c.seed()) + ", " + mode +
           "\n" + describe(c.script());
  }

  template <class Run>
  void run(const std::string& mode, Run&& run) {
    for (const auto& each : cases_) each->reset();
    run();
    for (const auto& each : cases_) {
      INFO(label(*each, mode));
      const std::vector<Values> expected = each->expected();
      const std::vector<Values> actual = each->actual();
      REQUIRE(actual.size() == expected.size());
      for (std::size_t list = 0; list < actual.size(); ++list) {
        Case::check_equal(actual[list], expected[list], "list", list);
      }
    }
  }

  std::vector<std::unique_ptr<Case>> cases_;
  Compiled<Player> compiled_ = compile(Player{this}, {.fullgraph = true});
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

/// What the functions of a run were made of.
class Coverage {
 public:
  void add(const Case& c) {
    const Script& script = c.script();
    bounded_ += c.bounded();
    for (const Lie lie : c.strided()) lies_[lie]++;
    operands_ = std::max(operands_, script.operands);
    if (c.repeats()) add_broadcasts(script);
    outputs_[{script.into > 0, script.outputs.size()}]++;
    const auto leaves =
        std::size_t(script.operands) + std::size_t(script.literals);
    for (std::size_t n = 0; n < script.steps.size(); ++n) {
      const Value& result = script.values[leaves + n];
      depth_ = std::max(depth_, result.depth);
      rates_[{script.steps[n].op, result.rate, result.dtype}]++;
      std::set<DType> met;
      for (const int v : script.steps[n].in) {
        const Value& from = script.values[std::size_t(v)];
        kinds_[{script.steps[n].op, from.kind}]++;
        if (from.rate == Rate::element) met.insert(from.dtype);
        if (script.steps[n].op == OpCode::cast) {
          casts_.insert({from.dtype, result.dtype});
        }
      }
      if (met.size() == 2) pairs_.insert({*met.begin(), *met.rbegin()});
    }
  }

  void check() const {
    CHECK(broadcast_operands_ > 40);
    CHECK(broadcast_results_ > 20);
    CHECK(broadcast_outputs_ > 20);
    CHECK(depth_ == max_depth);
    CHECK(operands_ == max_operands);
    CHECK(outputs_.size() == 2 * max_outputs);
    CHECK(bounded_ > 100000);
    CHECK(pairs_.size() == 10);
    CHECK(casts_.size() == 25);
    for (const Lie lie : {Lie::transposed, Lie::stepped, Lie::narrowed}) {
      INFO("stride class " << int(lie));
      CHECK(lies_.count(lie) == 1);
      if (lies_.count(lie) == 1) CHECK(lies_.at(lie) > 30);
    }
    for (int i = 0; i < op_count; ++i) {
      const auto op = OpCode(i);
      INFO(name_of(op));
      for (const DType dtype : reduced::all_dtypes) {
        INFO(name_of(dtype));
        CHECK(rates_.count({op, Rate::element, dtype}) == 1);
      }
      CHECK(rates_.count({op, Rate::entry, DType::float64}) == 1);
      for (int kind = 0; kind <= int(Kind::result); ++kind) {
        INFO("operand of kind " << kind);
        CHECK(kinds_.count({op, Kind(kind)}) == 1);
      }
    }
  }

 private:
  // Where smaller values meet others, or are the results.
  void add_broadcasts(const Script& script) {
    const auto leaves =
        std::size_t(script.operands) + std::size_t(script.literals);
    for (std::size_t n = 0; n < script.steps.size(); ++n) {
      if (script.values[leaves + n].is_small) continue;
      for (const int v : script.steps[n].in) {
        if (!script.values[std::size_t(v)].is_small) continue;
        ++(v < script.operands ? broadcast_operands_ : broadcast_results_);
      }
    }
    for (const int v : script.outputs) {
      if (script.values[std::size_t(v)].is_small) ++broadcast_outputs_;
    }
  }

  int broadcast_operands_ = 0;
  int broadcast_results_ = 0;
  int broadcast_outputs_ = 0;
  int depth_ = 0;
  int operands_ = 0;
  std::int64_t bounded_ = 0;
  std::map<std::pair<bool, std::size_t>, int> outputs_;
  std::map<std::tuple<OpCode, Rate, DType>, int> rates_;
  std::map<std::pair<OpCode, Kind>, int> kinds_;
  std::set<std::pair<DType, DType>> pairs_;  // that met as operands
  std::set<std::pair<DType, DType>> casts_;
  std::map<Lie, int> lies_;  // of operands that are strided
};

std::vector<std::uint64_t> seeds_from(std::uint64_t first, std::size_t count) {
  std::vector<std::uint64_t> seeds(count);
  std::iota(seeds.begin(), seeds.end(), first);
  return seeds;
}

std::uint64_t number_from(const char* variable, std::uint64_t otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

}  // namespace

TEST_CASE("compiled, interpreted and eager functions have the bits of loops") {
  if (std::getenv("FUSEBOOK_FUZZ_SEED") != nullptr) {
    const std::vector<std::uint64_t> seed = {
        number_from("FUSEBOOK_FUZZ_SEED", 0)};
    Batch(seed).check();
    return;
  }
  const bool longer = std::getenv("FUSEBOOK_FUZZ") != nullptr;
  const std::size_t count = number_from("FUSEBOOK_FUZZ", 1000);
  REQUIRE(count >= 1000);
  const std::uint64_t base = longer ? std::random_device()() : 2;
  std::printf("%zu random functions with seeds from FUSEBOOK_FUZZ_SEED=%s\n",
              count, std::to_string(base << 20).c_str());
  constexpr std::size_t in_a_batch = 25;
  // A few batches at a time, so that memory stays small.
  constexpr std::size_t at_once = 40 * in_a_batch;
  Coverage coverage;
  for (std::size_t first = 0; first < count; first += at_once) {
    std::vector<std::unique_ptr<Batch>> batches;
    for (std::size_t i = first; i < std::min(first + at_once, count);
         i += in_a_batch) {
      batches.push_back(std::make_unique<Batch>(
          seeds_from((base << 20) + i, std::min(in_a_batch, count - i))));
    }
    warm_up(batches);
    for (const auto& batch : batches) {
      batch->check();
      for (const auto& each : batch->cases()) coverage.add(*each);
    }
  }
  coverage.check();
}
