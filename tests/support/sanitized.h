#pragma once

namespace testing {

/// True under a sanitizer, where everything takes several times as long: what is
/// drawn or repeated is less there.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool sanitized = true;
#else
inline constexpr bool sanitized = false;
#endif

}  // namespace testing
