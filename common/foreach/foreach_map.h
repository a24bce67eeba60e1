#pragma once

#include <array>
#include <source_location>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "fusebook/foreach/map_element.h"
#include "fusebook/tensor/tensor_list.h"
#include "fusebook/trace/map_scope.h"
#include "fusebook/trace/recorder.h"

namespace fuse {

/// An operand of foreach_map: a list, a list of per-tensor numbers, one tensor
/// used for every tensor of a list, a 0-d tensor, a Scalar or a number.
class MapOperand {
 public:
  using Place = std::source_location;
  // NOLINTBEGIN(google-explicit-constructor)
  MapOperand(TensorList list, Place place = Place::current())
      : operand_(std::move(list)), place_(place) {}
  MapOperand(std::vector<Tensor> list, Place place = Place::current())
      : operand_(std::move(list)), place_(place) {}
  /// Throws Error for an undefined tensor.
  MapOperand(const Tensor& tensor, Place place = Place::current());
  MapOperand(Scalar number, Place place = Place::current())
      : operand_(std::move(number)), place_(place) {}
  MapOperand(double number, Place place = Place::current())
      : operand_(number, place), place_(place) {}
  MapOperand(MapOperand other, Place) : MapOperand(std::move(other)) {}
  // NOLINTEND(google-explicit-constructor)

  const Operand& operand() const { return operand_; }
  Place place() const { return place_; }
  bool is_repeated() const { return repeated_.defined(); }
  /// Repeats a single tensor into a list of `count` tensors.
  void repeat(std::size_t count);
  /// Sets the position of a literal, which distinguishes it from its
  /// neighbours.
  void number(int position);

 private:
  Operand operand_;
  Tensor repeated_;
  Place place_;
};

/// The lists that foreach_map_ writes its results into.
template <std::size_t N>
struct Into {
  std::array<MapOperand, N> lists;
};

/// `into(params, exp_avgs)`: lists whose elements are the function's first
/// arguments, and whose new values it returns.
template <class... Lists>
Into<1 + sizeof...(Lists)> into(const MapOperand& first, const Lists&... rest) {
  return {{first, MapOperand(rest, first.place())...}};
}

/// The checked operands of one call, and the handling of its results. Used by
/// the templates below.
class MapCall {
 public:
  /// `operands` are the outputs, followed by the rest. Throws Error for lists
  /// that do not fit together and for overlapping outputs.
  MapCall(std::string_view function, std::span<MapOperand> operands,
          std::span<const Operand*> pointers, std::size_t outputs);

  const Callee& callee() const { return callee_; }
  Operands operands() const { return operands_; }
  Element argument(std::size_t k) const {
    return Element(*operands_[k], int(k));
  }
  /// Result k as a new list.
  TensorList list_of(std::span<const Element> results, std::size_t k) const;
  /// Writes the results into the outputs.
  void store(std::span<Element> results) const;

  /// Throws Error because the function returned nothing.
  [[noreturn]] void refuse_nothing() const;

 private:
  void check_given(std::span<const MapOperand> operands) const;
  void check_outputs(std::span<const MapOperand> operands) const;
  void check_results(std::span<const Element> results) const;
  Operand value_of(std::span<const Element> results, std::size_t k) const;
  Operand number_of(const Operand& result) const;
  [[noreturn]] void refuse(const std::string& what) const;

  Callee callee_;
  Operands operands_;
  Recorder::CallMark begin_;
};

namespace map_detail {

template <class T>
concept TupleLike = requires { std::tuple_size<T>::value; };

template <std::size_t>
using At = Element;  // the type at each position

template <class R>
auto to_elements(R&& result) {
  if constexpr (TupleLike<std::remove_cvref_t<R>>) {
    return std::apply(
        [](auto&&... each) {
          return std::array<Element, sizeof...(each)>{Element(each)...};
        },
        std::forward<R>(result));
  } else {
    return std::array<Element, 1>{Element(std::forward<R>(result))};
  }
}

/// Calls `f` with the first N operands of a call.
template <std::size_t... K, class F>
auto results_of(const MapCall& call, F& f, std::index_sequence<K...>) {
  static_assert(std::is_invocable_v<F&, At<K>...>,
                "the function takes one value for each list and number");
  using Result = std::invoke_result_t<F&, At<K>...>;
  if constexpr (std::is_void_v<Result>) {
    call.refuse_nothing();
    return std::array<Element, 0>();
  } else {
    const MapScope scope(call.callee(), call.operands());
    return to_elements(f(call.argument(K)...));
  }
}

template <std::size_t... K>
auto lists_of(const MapCall& call,
              [[maybe_unused]] std::span<const Element> results,
              std::index_sequence<K...>) {
  return std::array<TensorList, sizeof...(K)>{call.list_of(results, K)...};
}

template <class F, std::size_t... K>
constexpr bool returns_tuple(std::index_sequence<K...>) {
  using Result = std::invoke_result_t<F&, At<K>...>;
  return TupleLike<std::remove_cvref_t<Result>>;
}

/// The operands of one call, at stable addresses for its duration.
template <std::size_t N>
struct Frame {
  std::array<MapOperand, N> given;
  std::array<const Operand*, N> pointers = {};
};

}  // namespace map_detail

/// Applies a function of element values to lists:
///
///     auto blended = foreach_map(
///         [](auto p, auto g) { return lerp(p, g, 0.1); }, params, grads);
///
/// The function is called once, with an Element for each operand, and describes
/// what happens to every element of every tensor. It returns an Element, or a
/// tuple of them; the result is a new TensorList, or an array of them. A value
/// that depends only on per-tensor numbers gives a per-tensor list. Inside
/// `compile` this fuses with the code around it; outside, each operation runs
/// separately.
///
/// All lists must have the same length, and their tensors shapes that
/// broadcast; each result has the broadcast shapes of its inputs. For mixed
/// dtypes, see Element. Otherwise throws Error naming the operand and the
/// place, also if the function returns nothing or a plain number, or reads data
/// (`item()`).
template <class F, class... Rest>
auto foreach_map(F f, const MapOperand& first, const Rest&... rest) {
  constexpr std::size_t count = 1 + sizeof...(Rest);
  constexpr auto positions = std::make_index_sequence<count>();
  map_detail::Frame<count> frame{{first, MapOperand(rest, first.place())...}};
  const MapCall call("foreach_map", frame.given, frame.pointers, 0);
  const auto results = map_detail::results_of(call, f, positions);
  constexpr std::size_t outputs = std::tuple_size_v<decltype(results)>;
  auto lists =
      map_detail::lists_of(call, results, std::make_index_sequence<outputs>());
  if constexpr (map_detail::returns_tuple<F>(positions)) {
    return lists;
  } else if constexpr (outputs == 1) {
    return std::move(lists[0]);
  }
}

/// The same in place: the function's first arguments are the current values of
/// the outputs, followed by the operands; it returns the new values of the
/// outputs, in order.
///
///     foreach_map_(
///         [](auto m, auto v, auto g) {
///           return std::tuple(lerp(m, g, 0.1), lerp(v, g * g, 0.001));
///         },
///         into(exp_avgs, exp_avg_sqs), grads);
///
/// All values are computed from the previous contents of the lists. Inside
/// `compile` they are written straight to the lists, without intermediate
/// memory. Numbers, per-tensor values and results of smaller shapes are
/// broadcast to an output. Besides what foreach_map rejects, throws Error for a
/// number of results that differs from the number of outputs, for elements
/// assigned to a per-tensor output, for results of larger shapes than their
/// outputs, and for outputs that overlap each other or a different tensor that
/// the results are computed from.
template <class F, std::size_t N, class... Rest>
void foreach_map_(F f, const Into<N>& outputs, const Rest&... rest) {
  constexpr std::size_t count = N + sizeof...(Rest);
  const MapOperand::Place place = outputs.lists[0].place();
  auto frame = [&]<std::size_t... K>(std::index_sequence<K...>) {
    return map_detail::Frame<count>{
        {outputs.lists[K]..., MapOperand(rest, place)...}};
  }(std::make_index_sequence<N>());
  const MapCall call("foreach_map_", frame.given, frame.pointers, N);
  auto results =
      map_detail::results_of(call, f, std::make_index_sequence<count>());
  call.store(results);
}

/// The same for one output.
template <class F, class... Rest>
void foreach_map_(F f, const MapOperand& output, const Rest&... rest) {
  foreach_map_(std::move(f), Into<1>{{output}}, rest...);
}

}  // namespace fuse
