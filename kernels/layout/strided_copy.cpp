#include "fusebook/layout/strided_copy.h"

#include <cstring>

namespace fuse {
namespace {

// With a constant size, the copy becomes a single move.
template <std::size_t size>
void copy(char* to, i64 to_step, const char* from, i64 from_step, i64 n) {
  for (i64 i = 0; i < n; ++i) {
    std::memmove(to + i * to_step, from + i * from_step, size);
  }
}

}  // namespace

void copy_strided(void* to, i64 to_stride, const void* from, i64 from_stride,
                  i64 n, std::size_t size) {
  if (n == 0) return;
  auto* const target = static_cast<char*>(to);
  const auto* const source = static_cast<const char*>(from);
  const auto bytes = i64(size);
  if (to_stride == 1 && from_stride == 1) {
    std::memmove(target, source, std::size_t(n) * size);
  } else if (size == 2) {
    copy<2>(target, to_stride * bytes, source, from_stride * bytes, n);
  } else if (size == 4) {
    copy<4>(target, to_stride * bytes, source, from_stride * bytes, n);
  } else if (size == 8) {
    copy<8>(target, to_stride * bytes, source, from_stride * bytes, n);
  } else {
    for (i64 i = 0; i < n; ++i) {
      std::memmove(target + i * to_stride * bytes,
                   source + i * from_stride * bytes, size);
    }
  }
}

}  // namespace fuse
