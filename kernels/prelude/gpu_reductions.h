// What a generated GPU kernel that reduces has besides: a block of threads takes
// a chunk, a thread each lane. Behind gpu_loops.h, reductions.h and gpu_barrier.h; never
// included by the library itself, only its text is.
#ifndef FUSEBOOK_GPU_REDUCTIONS_H
#define FUSEBOOK_GPU_REDUCTIONS_H

namespace fuse {
namespace FUSE_DEVICE {

// One number of each thread becomes one number of the block, in all threads.
template <class How>
FUSE_FN double join_block(How how, double own) {
  __shared__ double lanes[reduction_lanes];
  const int lane = int(threadIdx.x);
  __syncthreads();  // the others may still read what was there before
  lanes[lane] = own;
  __syncthreads();
  for (int half = reduction_lanes / 2; half > 0; half /= 2) {
    if (lane < half) lanes[lane] = how.join(lanes[lane], lanes[lane + half]);
    __syncthreads();
  }
  return lanes[0];
}

// Joins numbers that other blocks have written, as the elements of one chunk.
// What is volatile comes from memory, not from a cache that has an old copy.
template <class How>
FUSE_FN double join_numbers(How how, const double* numbers, i64 count) {
  const volatile double* const fresh = numbers;
  if (count == 1) return fresh[0];
  double own = how.first();
#pragma unroll 1  // rarely many numbers; several at a time cost registers
  for (i64 i = threadIdx.x; i < count; i += reduction_lanes) {
    own = how.join(own, fresh[i]);
  }
  return join_block(how, own);
}

// What is done for each reduction k of a body, `How`. Structs, because NVRTC takes
// a lambda with `auto` for a function of the host.
struct BeginReduction {
  double* own;

  template <class How>
  FUSE_FN void operator()(int k, How how, double) const {
    own[k] = how.first();
  }
};

struct TakeElement {
  double* own;

  template <class How>
  FUSE_FN void operator()(int k, How how, double value) const {
    own[k] = how.join(own[k], how.term(value));
  }
};

struct EndChunk {
  const double* own;
  double* to;
  i64 apart;

  template <class How>
  FUSE_FN void operator()(int k, How how, double) const {
    const double joined = join_block(how, own[k]);
    if (threadIdx.x == 0) to[k * apart] = joined;
  }
};

struct EndTensor {
  double* numbers;
  const ReducedTensor& tensor;

  template <class How>
  FUSE_FN void operator()(int k, How how, double) const {
    const double joined = join_numbers(
        how, numbers + tensor.partials + k * tensor.chunks, tensor.chunks);
    if (threadIdx.x == 0) numbers[tensor.results + k * tensor.apart] = joined;
  }
};

struct EndList {
  double* numbers;
  const ReducedList& list;

  template <class How>
  FUSE_FN void operator()(int k, How how, double) const {
    if ((list.totals >> k & 1U) == 0) return;
    double* const results = numbers + list.results + k * (list.count + 1);
    const double joined = join_numbers(how, results, list.count);
    if (threadIdx.x == 0) results[list.count] = joined;
  }
};

// Reduces chunks of tensors of one body; see cpu_reductions.h.
template <class Body>
class BlockReducer {
 public:
  FUSE_FN BlockReducer(const PhasedLaunch& work, const double* args)
      : work_(work), args_(args) {}

  FUSE_LOOP void run(const ReducedTensor& tensor, i64 index, i64 number) const {
    __syncthreads();  // the others may still read the last tensor's
    if (threadIdx.x == 0) prepare(tensor);
    __syncthreads();
    double own[Body::reductions];
    Body::reduce({}, BeginReduction{own});
    take_elements(tensor, number * reduction_chunk, own);
    const bool alone = tensor.chunks == 1;
    double* const to =
        work_.numbers + (alone ? tensor.results : tensor.partials + number);
    Body::reduce({}, EndChunk{own, to, alone ? tensor.apart : tensor.chunks});
    if (!is_last(work_.tickets + index, tensor.chunks)) return;
    if (!alone) Body::reduce({}, EndTensor{work_.numbers, tensor});
    const ReducedList& list = work_.lists[tensor.list];
    if (list.totals == 0) return;
    unsigned* const ticket = work_.tickets + work_.tensor_count + tensor.list;
    if (!is_last(ticket, list.count)) return;
    Body::reduce({}, EndList{work_.numbers, list});
  }

 private:
  static FUSE_FN typename Body::PerTensor& entry() {
    __shared__ typename Body::PerTensor of_block;
    return of_block;
  }

  FUSE_FN void prepare(const ReducedTensor& tensor) const {
    const Launch& table = work_.launch.table;
    entry() = Body::per_tensor(
        Body::uniform(args_),
        Body::inputs(table.pointers + tensor.pointers,
                     table.columns + tensor.instance * table.column_count));
  }

  template <class At>
  FUSE_FN void take(const At& at, i64 i, double* own) const {
    typename Body::Element x;
    Body::load(x, at, i);
    Body::compute(x, entry());
    Body::reduce(x, TakeElement{own});
  }

  FUSE_FN void take_elements(const ReducedTensor& tensor, i64 begin,
                             double* own) const {
    const i64 rest = tensor.numel - begin;
    const i64 end = begin + (rest < reduction_chunk ? rest : reduction_chunk);
    const Launch& table = work_.launch.table;
    void* const* pointers = table.pointers + tensor.pointers;
    if constexpr (requires { typename Body::Lines; }) {
      const i64* strides = table.strides + tensor.pointers;
      const i64 first = begin / tensor.line;
      const i64 before = begin - first * tensor.line;
      for (i64 i = begin + threadIdx.x; i < end; i += reduction_lanes) {
        const i64 ahead = before + (i - begin);
        const i64 lines = lines_in(ahead, tensor.line);
        const i64 row = (first + lines) * Body::slots;
        const typename Body::Lines at(pointers + row, strides + row);
        take(at, ahead - lines * tensor.line, own);
      }
    } else {
      const typename Body::Pointers at(pointers);
      for (i64 i = begin + threadIdx.x; i < end; i += reduction_lanes) {
        take(at, i, own);
      }
    }
  }

  // How many whole lines so many elements are, less than a line and a chunk: a
  // division of 32 bits does.
  static FUSE_FN i64 lines_in(i64 elements, i64 line) {
    if (elements < line) return 0;
    const i64 most = line < reduction_chunk ? line : reduction_chunk;
    return 1 + unsigned(elements - line) / unsigned(most);
  }

  // True in all threads of the last of `count` blocks that come here. It leaves
  // the ticket as it was.
  static FUSE_FN bool is_last(unsigned* ticket, i64 count) {
    __shared__ bool last;
    __syncthreads();
    if (threadIdx.x == 0) {
      __threadfence();  // what was written comes before the ticket ...
      last = count == 1 || i64(atomicAdd(ticket, 1U)) + 1 == count;
      if (last && count > 1) *ticket = 0;
      __threadfence();  // ... and the last ticket before what is read
    }
    __syncthreads();
    return last;
  }

  const PhasedLaunch& work_;
  const double* const args_;
};

// Calls visit(tensor, index of tensor, number of chunk) for every chunk of this
// block, phase by phase.
template <class Visit>
FUSE_FN void for_each_reduced(const PhasedLaunch& work, Visit visit) {
  for (int phase = work.phase_begin; phase < work.phase_end; ++phase) {
    const PhaseChunks chunks = work.phases[phase];
    for (i64 c = chunks.begin + blockIdx.x; c < chunks.end; c += gridDim.x) {
      const ReducedChunk chunk = work.chunks[c];
      visit(work.tensors[chunk.tensor], chunk.tensor, chunk.number);
    }
    const bool is_last = phase + 1 == work.phase_end && !work.stores;
    if (!is_last) wait_for_grid(work.barrier);
  }
}

}  // namespace FUSE_DEVICE
}  // namespace fuse

#endif  // FUSEBOOK_GPU_REDUCTIONS_H
