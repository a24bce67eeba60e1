#pragma once

#include <array>
#include <cstddef>
#include <string>

namespace fuse {

/// What a compiled function does about plain numbers that change. It bakes them
/// into its kernels and guards them; a 0-d tensor is an input and never
/// guarded, whatever the policy.
enum class Policy {
  /// The first hyper-parameter that moves turns all of them into inputs, in all
  /// groups and for good: one recompile, whatever moves later. A number written
  /// in the function itself becomes an input when it moves.
  promote,
  /// Every value gets a kernel of its own. After `specialization_limit` of them
  /// for the same operations one warning is given, and values without a kernel
  /// run eagerly.
  specialize,
  /// A recompile is an Error, with the report.
  fail_on_recompile,
};

/// How many kernels Policy::specialize makes for the same operations.
inline constexpr std::size_t specialization_limit = 8;

/// How many kernels a function makes for operations that differ, whatever the
/// policy (and how many for each segment between its graph breaks): what else it
/// records runs eagerly, after one warning. What differs only in which lists take
/// part, and how many of them, is no kernel of its own.
inline constexpr std::size_t operations_limit = 8;

/// The names of the policies, in their order.
inline constexpr std::array policy_names = {"promote", "specialize",
                                            "fail_on_recompile"};

/// The policy of that name. Throws Error naming all of them.
Policy policy_named(const std::string& name);

}  // namespace fuse
