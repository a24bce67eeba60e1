#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "fusebook/optim_base/each_scalar.h"
#include "fusebook/trace/scalar.h"

namespace fuse {
namespace options_fields {

inline constexpr std::size_t most = 16;

// Converts to any field of a struct, but not to its base class.
template <class Whole>
struct AnyField {
  template <class Field>
    requires(!std::is_base_of_v<Field, Whole>)
  operator Field() const;  // NOLINT(google-explicit-constructor)
};

template <class T, std::size_t... I>
constexpr bool takes_in_braces(std::index_sequence<I...>) {
  return requires { T{(static_cast<void>(I), AnyField<T>())...}; };
}
template <class T, std::size_t... I>
constexpr bool takes_in_parentheses(std::index_sequence<I...>) {
  return requires { T((static_cast<void>(I), AnyField<T>())...); };
}

// Number of fields of a struct; 0 if that cannot be determined. Arrays and
// bases count as several fields in braces, where braces may be elided, and as
// none in parentheses.
template <class T, std::size_t N = most>
constexpr std::size_t count() {
  if constexpr (N == 0 || !std::is_aggregate_v<T>) {
    return 0;
  } else {
    using Numbers = std::make_index_sequence<N>;
    constexpr bool braces = takes_in_braces<T>(Numbers());
    constexpr bool parentheses = takes_in_parentheses<T>(Numbers());
    if constexpr (braces != parentheses) return 0;
    return braces ? N : count<T, N - 1>();
  }
}

// One line for each number of fields.
// NOLINTBEGIN(readability-function-size)
template <std::size_t N, class T>
auto tie(const T& t) {
  // clang-format off
#define FUSE_TIE(n, ...) \
  if constexpr (N == n) { const auto& [__VA_ARGS__] = t; return std::tie(__VA_ARGS__); } else
  FUSE_TIE(1, a)
  FUSE_TIE(2, a, b)
  FUSE_TIE(3, a, b, c)
  FUSE_TIE(4, a, b, c, d)
  FUSE_TIE(5, a, b, c, d, e)
  FUSE_TIE(6, a, b, c, d, e, f)
  FUSE_TIE(7, a, b, c, d, e, f, g)
  FUSE_TIE(8, a, b, c, d, e, f, g, h)
  FUSE_TIE(9, a, b, c, d, e, f, g, h, i)
  FUSE_TIE(10, a, b, c, d, e, f, g, h, i, j)
  FUSE_TIE(11, a, b, c, d, e, f, g, h, i, j, k)
  FUSE_TIE(12, a, b, c, d, e, f, g, h, i, j, k, l)
  FUSE_TIE(13, a, b, c, d, e, f, g, h, i, j, k, l, m)
  FUSE_TIE(14, a, b, c, d, e, f, g, h, i, j, k, l, m, n)
  FUSE_TIE(15, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o)
  { return std::tuple<>(); }
#undef FUSE_TIE
  // clang-format on
}
// NOLINTEND(readability-function-size)

template <class T>
struct Field {
  static constexpr std::size_t scalars = 0;
  static constexpr bool known =
      std::is_scalar_v<T> || std::is_same_v<T, std::string>;
  static bool same(const T& a, const T& b) {
    if constexpr (std::is_floating_point_v<T>) {
      return std::bit_cast<std::array<std::byte, sizeof(T)>>(a) ==
             std::bit_cast<std::array<std::byte, sizeof(T)>>(b);
    } else {
      return a == b;
    }
  }
};
template <>
struct Field<Scalar> {
  static constexpr std::size_t scalars = 1;
  static constexpr bool known = true;
  static bool same(const Scalar&, const Scalar&) { return true; }
};
template <std::size_t N>
struct Field<std::array<Scalar, N>> {
  static constexpr std::size_t scalars = N;
  static constexpr bool known = true;
  static bool same(const auto&, const auto&) { return true; }
};

template <class Tuple>
struct Fields;
template <class... T>
struct Fields<std::tuple<const T&...>> {
  static constexpr bool known = sizeof...(T) > 0 && (Field<T>::known && ...);
  static constexpr std::size_t scalars = (Field<T>::scalars + ... + 0);
  using Tie = std::tuple<const T&...>;
  static bool same(const Tie& a, const Tie& b) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return (Field<T>::same(std::get<I>(a), std::get<I>(b)) && ...);
    }(std::index_sequence_for<T...>());
  }
};

// All Scalars are among those that for_each_scalar visits.
template <class Options>
bool lists_all(const Options& options, std::size_t scalars) {
  static const bool all = [&] {
    Options copy = options;
    std::size_t listed = 0;
    each_scalar(copy, [&](const char*, int, Scalar&) { ++listed; });
    return listed == scalars;
  }();
  return all;
}

}  // namespace options_fields

/// True if two options differ only in the numbers that `for_each_scalar`
/// visits. Also false if that cannot be determined: for a struct with fields
/// other than Scalars, small arrays of them, strings and built-in types, or
/// with more than fifteen fields.
template <class Options>
bool same_but_numbers(const Options& a, const Options& b) {
  constexpr std::size_t n = options_fields::count<Options>();
  if constexpr (n == 0 || n >= options_fields::most) {
    return false;
  } else {
    using All = options_fields::Fields<decltype(options_fields::tie<n>(a))>;
    if constexpr (!All::known) {
      return false;
    } else {
      return options_fields::lists_all(a, All::scalars) &&
             All::same(options_fields::tie<n>(a), options_fields::tie<n>(b));
    }
  }
}

}  // namespace fuse
