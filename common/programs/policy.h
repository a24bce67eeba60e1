#pragma once

#include <array>
#include <cstddef>
#include <string>

namespace fuse {

/// How a compiled function treats plain numbers that change. It bakes them into
/// its kernels and guards them; a 0-d tensor is an input and never guarded,
/// whatever the policy.
enum class Policy {
  /// The first hyper-parameter that moves turns all of them into inputs, in all
  /// groups and permanently: one recompile, whatever moves later. A literal in
  /// the function itself becomes an input when it moves.
  promote,
  /// Every value gets its own kernel. After `specialization_limit` kernels for
  /// the same operations a warning is printed once, and values without a kernel
  /// run eagerly.
  specialize,
  /// A recompile throws Error with the report.
  fail_on_recompile,
};

/// The maximum number of kernels Policy::specialize makes for the same
/// operations.
inline constexpr std::size_t specialization_limit = 8;

/// The maximum number of kernels a function makes for different operations,
/// whatever the policy (for each segment between its graph breaks): other
/// recordings run eagerly, after one warning. A difference only in which lists
/// take part, or how many, needs no new kernel.
inline constexpr std::size_t operations_limit = 8;

/// The names of the policies, in the order of the enum.
inline constexpr std::array policy_names = {"promote", "specialize",
                                            "fail_on_recompile"};

/// The policy of that name. Throws Error listing all names.
Policy policy_named(const std::string& name);

}  // namespace fuse
