#include "fusebook/nn/gemm.h"

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <new>
#include <string>

#include "fusebook/ops/loops.h"
#include "fusebook/runtime/parallel.h"
#include "fusebook/support/error.h"

namespace fuse {

namespace gemm_baseline {
extern const GemmTable table;
}
#ifdef FUSE_X86_LEVELS
namespace gemm_x86_64_v3 {
extern const GemmTable table;
}
namespace gemm_x86_64_v4 {
extern const GemmTable table;
}
#endif

namespace {

// Rows and columns of a block of the result. Each block packs its own operands:
// smaller blocks cost more, larger ones keep fewer threads busy.
constexpr std::int64_t block = 192;
// Below this many multiplications a second thread costs more than it saves.
constexpr std::int64_t work_for_threads = std::int64_t(1) << 18;

const GemmTable& best_table() {
  static const GemmTable& table = *gemm_table_for(loops().name);
  return table;
}

void run(const GemmSizes& sizes, const GemmMatrix<float>& a,
         const GemmMatrix<float>& b, const GemmTarget<float>& c) {
  best_table().in_float32(sizes, a, b, c);
}

void run(const GemmSizes& sizes, const GemmMatrix<double>& a,
         const GemmMatrix<double>& b, const GemmTarget<double>& c) {
  best_table().in_float64(sizes, a, b, c);
}

std::int64_t blocks_of(std::int64_t size) { return (size + block - 1) / block; }

// The part of the operand that belongs to rows of the result from `first` on.
template <class T>
GemmMatrix<T> from_row(GemmMatrix<T> a, std::int64_t first) {
  a.data += a.transposed ? first : first * a.leading;
  return a;
}

template <class T>
GemmMatrix<T> from_column(GemmMatrix<T> b, std::int64_t first) {
  b.data += b.transposed ? first * b.leading : first;
  return b;
}

// Blocks depend only on the sizes, never on the threads, and so do all bits.
template <class T>
struct Blocks {
  const GemmSizes& sizes;
  const GemmMatrix<T>& a;
  const GemmMatrix<T>& b;
  const GemmTarget<T>& c;
  std::atomic<bool> no_memory = false;

  void run_block(int index) {
    const std::int64_t across = blocks_of(sizes.n);
    const std::int64_t row = index / across * block;
    const std::int64_t column = index % across * block;
    const GemmSizes part = {std::min(block, sizes.m - row),
                            std::min(block, sizes.n - column), sizes.k};
    const GemmTarget<T> target = {c.data + row * c.leading + column, c.leading,
                                  c.accumulate};
    try {
      run(part, from_row(a, row), from_column(b, column), target);
    } catch (const std::bad_alloc&) {
      no_memory = true;
    }
  }
};

std::string text_of(const GemmSizes& sizes) {
  return fmt::format("{} x {} by {} x {}", sizes.m, sizes.k, sizes.k, sizes.n);
}

}  // namespace

const GemmTable* gemm_table_for(const char* instruction_set) {
  if (loops_for(instruction_set) == nullptr) return nullptr;
#ifdef FUSE_X86_LEVELS
  if (std::strcmp(instruction_set, "x86-64-v3") == 0) {
    return &gemm_x86_64_v3::table;
  }
  if (std::strcmp(instruction_set, "x86-64-v4") == 0) {
    return &gemm_x86_64_v4::table;
  }
#endif
  return &gemm_baseline::table;
}

template <class T>
void gemm(const GemmSizes& sizes, const GemmMatrix<T>& a,
          const GemmMatrix<T>& b, const GemmTarget<T>& c) {
  if (sizes.m == 0 || sizes.n == 0) return;
  Blocks<T> blocks{sizes, a, b, c};
  const auto run_block = [&](int index) { blocks.run_block(index); };
  const std::int64_t count = blocks_of(sizes.m) * blocks_of(sizes.n);
  const double work = double(sizes.m) * double(sizes.n) * double(sizes.k);
  if (count > 1 && work >= double(work_for_threads)) {
    parallel_run(int(count), run_block);
  } else {
    for (int i = 0; i < count; ++i) run_block(i);
  }
  if (!blocks.no_memory) return;
  throw Error("out of memory for the product of matrices of " + text_of(sizes) +
              "; free tensors that are no longer needed, or use smaller ones");
}

template void gemm(const GemmSizes&, const GemmMatrix<float>&,
                   const GemmMatrix<float>&, const GemmTarget<float>&);
template void gemm(const GemmSizes&, const GemmMatrix<double>&,
                   const GemmMatrix<double>&, const GemmTarget<double>&);

}  // namespace fuse
