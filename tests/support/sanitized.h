#pragma once

namespace testing {

/// True under a sanitizer, where everything takes several times as long: what is
/// drawn or repeated is less there.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool sanitized = true;
#else
inline constexpr bool sanitized = false;
#endif

/// True under that of threads, which delivers no signal in a child of a process with
/// several threads.
#if defined(__SANITIZE_THREAD__)
inline constexpr bool holds_signals_back = true;
#else
inline constexpr bool holds_signals_back = false;
#endif

}  // namespace testing
