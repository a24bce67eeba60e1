#include "fusebook/nn/gemm.h"

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <new>
#include <string>
#include <vector>

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

std::string text_of(const GemmSizes& sizes) {
  return fmt::format("{} x {} by {} x {}", sizes.m, sizes.k, sizes.k, sizes.n);
}

// The blocks of all jobs, counted through. They depend only on the sizes, never
// on the threads or on the other jobs, and so do all bits.
template <class T>
class Blocks {
 public:
  explicit Blocks(std::span<const GemmJob<T>> jobs) : jobs_(jobs) {
    for (const GemmJob<T>& job : jobs) {
      const GemmSizes& sizes = job.sizes;
      count_ += blocks_of(sizes.m) * blocks_of(sizes.n);
      work_ += double(sizes.m) * double(sizes.n) * double(sizes.k);
      ends_.push_back(count_);
    }
  }

  void run_all() {
    const auto run_one = [&](int index) { run_block(index); };
    if (count_ > 1 && work_ >= double(work_for_threads)) {
      parallel_run(int(count_), run_one);
    } else {
      for (int i = 0; i < int(count_); ++i) run_block(i);
    }
    const GemmJob<T>* const failed = no_memory_;
    if (failed == nullptr) return;
    throw Error(
        "out of memory for the product of matrices of " +
        text_of(failed->sizes) +
        "; free tensors that are no longer needed, or use smaller ones");
  }

 private:
  void run_block(int index) {
    const auto end = std::ranges::upper_bound(ends_, index);
    const GemmJob<T>& job = jobs_[std::size_t(end - ends_.begin())];
    const std::int64_t across = blocks_of(job.sizes.n);
    const std::int64_t first =
        *end - blocks_of(job.sizes.m) * blocks_of(job.sizes.n);
    const std::int64_t row = (index - first) / across * block;
    const std::int64_t column = (index - first) % across * block;
    const GemmSizes part = {std::min(block, job.sizes.m - row),
                            std::min(block, job.sizes.n - column), job.sizes.k};
    const GemmTarget<T>& c = job.c;
    const GemmTarget<T> target = {c.data + row * c.leading + column, c.leading,
                                  c.accumulate};
    try {
      run(part, from_row(job.a, row), from_column(job.b, column), target);
    } catch (const std::bad_alloc&) {
      no_memory_ = &job;
    }
  }

  std::span<const GemmJob<T>> jobs_;
  std::vector<std::int64_t> ends_;  // of each job's blocks
  std::int64_t count_ = 0;
  double work_ = 0;  // multiplications
  std::atomic<const GemmJob<T>*> no_memory_ = nullptr;
};

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
void gemm(std::span<const GemmJob<T>> jobs) {
  Blocks<T>(jobs).run_all();
}

template void gemm(std::span<const GemmJob<float>>);
template void gemm(std::span<const GemmJob<double>>);

}  // namespace fuse
