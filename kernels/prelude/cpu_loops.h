// The loops around generated code on a CPU; gpu_loops.h has those for a GPU.
#ifndef FUSEBOOK_CPU_LOOPS_H
#define FUSEBOOK_CPU_LOOPS_H

#ifndef FUSEBOOK_LAUNCH_H  // a kernel has no files to include
#include "fusebook/prelude/launch.h"
#endif
#ifndef FUSEBOOK_HALF_H  // a kernel has no files to include
#include "fusebook/prelude/half.h"
#endif

namespace fuse::FUSE_DEVICE {

// Elements `stride` apart.
template <class T>
struct Line {
  Unaligned<T>* address;
  i64 stride;

  FUSE_FN Line(void* first, i64 apart)
      : address(static_cast<Unaligned<T>*>(first)), stride(apart) {}
  FUSE_FN Unaligned<T>& operator[](i64 i) const { return address[i * stride]; }
};

#if !defined(FUSE_GPU)  // gpu_loops.h has other loops
// Within a row hardware fetches ahead, but only to the end of a page: the first
// elements of the next one come too late, unless a loop asks for them in time. AMD's
// processors are faster where loops never ask: no tensor is as long as this distance.
constexpr i64 elements_a_turn = 64;
#if defined(__znver1__) || defined(__znver2__) || defined(__znver3__) || \
    defined(__znver4__) || defined(__znver5__)
constexpr i64 elements_ahead = i64(1) << 40;
#else
constexpr i64 elements_ahead = 512;
#endif

// Asks for what one turn takes, from `first` on.
template <class T>
FUSE_FN void want(const T* first) {
  const char* const bytes = reinterpret_cast<const char*>(first);
  for (i64 k = 0; k < elements_a_turn * i64(sizeof(T)); k += 64) {
    __builtin_prefetch(bytes + k);
  }
}

// The same for n elements that come after those from i on, if there are any.
template <class Body>
FUSE_FN void want_ahead(const typename Body::Pointers& at, i64 i, i64 n,
                        i64 end) {
  if (end - i <= elements_ahead) return;
  for (i64 k = 0; k < n; k += elements_a_turn) {
    Body::want(at, i + elements_ahead + k);
  }
}

// The loop over elements [begin, end) of one tensor, or of one line of it.
// `Body` is generated: Pointers, PerTensor, Element, load, compute, store, want;
// and Lines instead of Pointers where elements may be strided.
template <class Body, class At>
FUSE_LOOP void run_at(const typename Body::PerTensor entry, const At at,
                      i64 begin, i64 end) {
  FUSE_INDEPENDENT
  for (i64 i = begin; i < end; ++i) {
    typename Body::Element x;
    Body::load(x, at, i);
    Body::compute(x, entry);
    Body::store(x, at, i);
  }
}

// The same where they are contiguous.
template <class Body>
FUSE_FN void run_dense(const typename Body::PerTensor entry,
                       const typename Body::Pointers at, i64 begin, i64 end) {
  if constexpr (requires { typename Body::Lanes; }) {
    Body::Lanes::template run<Body>(entry, at, begin, end);
  } else {
    run_at<Body>(entry, at, begin, end);
  }
}

template <class Body>
FUSE_FN void run_elements(const typename Body::PerTensor entry,
                          void* const* pointers, i64 begin, i64 end) {
  const typename Body::Pointers at(pointers);
  constexpr bool in_blocks = requires { Body::coded; };  // has turns of its own
  i64 i = begin;
  while (i < end) {
    i64 next = end;
    if constexpr (!in_blocks) {
      want_ahead<Body>(at, i, elements_a_turn, end);
      if (end - i > elements_ahead) next = i + elements_a_turn;
    }
    run_dense<Body>(entry, at, i, next);
    i = next;
  }
}

// Where all elements are contiguous, as in tensors that are dense in the same
// order, the loop without strides runs.
template <class Body>
FUSE_FN void run_line(const typename Body::PerTensor entry,
                      void* const* pointers, const i64* strides, i64 begin,
                      i64 end) {
  const typename Body::Lines at(pointers, strides);
  if (at.dense()) {
    run_elements<Body>(entry, pointers, begin, end);
  } else {
    run_at<Body>(entry, at, begin, end);
  }
}

// Runs rows of one body. Rows with the same inputs (nearly always all of them:
// the same step count, the same rates) share one evaluation of the per-tensor
// stage.
template <class Body>
class Runner {
 public:
  FUSE_FN explicit Runner(const Launch& launch)
      : launch_(launch), uniform_(Body::uniform(launch.args)) {}

  FUSE_LOOP void run(const Row& row, i64 begin, i64 end, bool whole) {
    void* const* pointers = launch_.pointers + row.pointers;
    prepare(row, pointers);
    if constexpr (requires { Body::draws; }) {
      run_drawing<Body>(entry_, launch_, row, begin, end);
    } else if constexpr (requires { typename Body::Lines; }) {
      run_line<Body>(entry_, pointers, launch_.strides + row.pointers, begin,
                     end);
    } else {
      run_elements<Body>(entry_, pointers, begin, end);
    }
    if (whole) Body::finish(entry_, pointers);
  }

  FUSE_LOOP void finish(const Row& row) {
    void* const* pointers = launch_.pointers + row.pointers;
    prepare(row, pointers);
    Body::finish(entry_, pointers);
  }

 private:
  FUSE_LOOP void prepare(const Row& row, void* const* pointers) {
    const double* columns =
        launch_.columns + row.instance * launch_.column_count;
    const typename Body::Inputs inputs = Body::inputs(pointers, columns);
    if (ready_ && __builtin_memcmp(&inputs, &inputs_, sizeof(inputs)) == 0) {
      return;
    }
    inputs_ = inputs;
    entry_ = Body::per_tensor(uniform_, inputs);
    ready_ = true;
  }

  const Launch& launch_;
  typename Body::Uniform uniform_;
  typename Body::Inputs inputs_{};
  typename Body::PerTensor entry_{};
  bool ready_ = false;
};

// True when other rows are lines of the same tensor.
FUSE_FN bool shares_tensor(const Launch& launch, i64 r) {
  const i64 entry = launch.rows[r].entry;
  return (r > 0 && launch.rows[r - 1].entry == entry) ||
         (r + 1 < launch.row_count && launch.rows[r + 1].entry == entry);
}

constexpr i64 rows_ahead = 8;  // so that memory has time to answer

// Asks for the beginning of a row that comes soon: up to four lines of 64 bytes
// for each of its addresses, as if elements had four bytes. Processors foresee
// the rest of a row, but not where the next one lies.
FUSE_FN void prefetch_row(const Launch& launch, i64 r) {
  if (r + 1 >= launch.row_count) return;
  const Row& row = launch.rows[r];
  const i64 bytes = row.numel < 64 ? row.numel * 4 : 256;
  for (i64 p = row.pointers; p < launch.rows[r + 1].pointers; ++p) {
    const char* const first = static_cast<const char*>(launch.pointers[p]);
    for (i64 i = 0; i < bytes; i += 64) __builtin_prefetch(first + i);
  }
}

// Calls visit(row, begin, end, whole) for every row of a part. A line is never
// a whole tensor.
template <class Visit>
FUSE_FN void for_each_row(const Launch& launch, const Part& part, Visit visit) {
  for (i64 r = part.row; r <= part.last_row; ++r) {
    prefetch_row(launch, r + rows_ahead);
    const Row& row = launch.rows[r];
    const i64 begin = r == part.row ? part.begin : 0;
    const i64 end = r == part.last_row ? part.end : row.numel;
    const bool whole = begin == 0 && end == row.numel;
    const bool lines = launch.strides != nullptr && shares_tensor(launch, r);
    visit(row, begin, end, whole && !lines);
  }
}

#endif  // FUSE_GPU

}  // namespace fuse::FUSE_DEVICE

#endif  // FUSEBOOK_CPU_LOOPS_H
