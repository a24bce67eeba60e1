// Inserted into every generated GPU kernel between cpu_loops.h and its bodies:
// the work of one block of threads. The library never includes this file, only
// its text.
#ifndef FUSEBOOK_GPU_LOOPS_H
#define FUSEBOOK_GPU_LOOPS_H

namespace fuse {
namespace FUSE_DEVICE {

// Adjacent elements that are loaded and stored together, up to 16 bytes at a
// time.
template <class T, int count>
struct alignas(count * sizeof(T) < 16 ? count * sizeof(T) : 16) Pack {
  T value[count];
};

// Elements of 16 bits share registers in twos: one by one, each would take a
// register of its own until its pack is stored.
template <int count>
struct alignas(count * 2 < 16 ? count * 2 : 16) Pack<bits16, count> {
  unsigned twos[count / 2];
};

template <int count>
FUSE_FN bits16 half_of(const Pack<bits16, count>& pack, int k) {
  return bits16(pack.twos[k / 2] >> k % 2 * 16);
}

template <int count>
FUSE_FN void put_half(Pack<bits16, count>& pack, int k, bits16 half) {
  unsigned& two = pack.twos[k / 2];
  const unsigned shift = k % 2 * 16;
  two = (two & 0xffff0000U >> shift) | unsigned(half) << shift;
}

// Elements are in global memory, never in shared memory. The compiler cannot
// know this, because their addresses come from a table.
#if defined(__CUDACC__)
#define FUSE_IN_GLOBAL(address) __builtin_assume(__isGlobal(address))
#else
#define FUSE_IN_GLOBAL(address) ((void)0)
#endif

// Prefetches the memory around an address, without waiting.
FUSE_FN void want(const void* address) {
#if defined(__CUDACC__)
  asm volatile("prefetch.global.L2 [%0];" ::"l"(address));
#else
  (void)address;
#endif
}

template <class T>
FUSE_FN bool is_aligned(const T* address) {
  return reinterpret_cast<unsigned long long>(address) % 16 == 0;
}

template <int count, class T>
FUSE_FN Pack<T, count> load_pack(const T* address) {
  FUSE_IN_GLOBAL(address);
  return *reinterpret_cast<const Pack<T, count>*>(address);
}

template <class T, int count>
FUSE_FN void store_pack(T* address, const Pack<T, count>& pack) {
  FUSE_IN_GLOBAL(address);
  *reinterpret_cast<Pack<T, count>*>(address) = pack;
}

// Elements [begin, end) of one tensor, a pack at a time where every list allows
// it. All of a pack is loaded before any of it is stored, so that lists may
// share a tensor.
template <class Body>
FUSE_LOOP void run_packs(const typename Body::PerTensor& t,
                         const typename Body::Pointers& at, i64 begin,
                         i64 end) {
  const i64 step = i64(blockDim.x) * Body::pack;
  for (i64 i = begin + i64(threadIdx.x) * Body::pack; i < end; i += step) {
    typename Body::Packs packs = {};
    Body::load(packs, at, i);
#pragma unroll  // else the packs would be in memory
    for (int k = 0; k < Body::pack; ++k) {
      typename Body::Element x;
      Body::take(x, packs, k);
      Body::compute(x, t);
      Body::put(packs, x, k);
    }
    Body::store(packs, at, i);
  }
}

template <class Body, class At>
FUSE_LOOP void run_single(const typename Body::PerTensor& t, const At& at,
                          i64 begin, i64 end) {
  for (i64 i = begin + i64(threadIdx.x); i < end; i += i64(blockDim.x)) {
    typename Body::Element x;
    Body::load(x, at, i);
    Body::compute(x, t);
    Body::store(x, at, i);
  }
}

template <class Body>
FUSE_FN void run_elements(const typename Body::PerTensor& t,
                          void* const* pointers, i64 begin, i64 end) {
  const typename Body::Pointers at(pointers);
  i64 whole = begin;
  if (Body::aligned(at, begin)) {
    whole += (end - begin) / Body::pack * Body::pack;
    run_packs<Body>(t, at, begin, whole);
  }
  run_single<Body>(t, at, whole, end);
}

// A strided line is processed one element at a time.
template <class Body>
FUSE_FN void run_line(const typename Body::PerTensor& t, void* const* pointers,
                      const i64* strides, i64 begin, i64 end) {
  const typename Body::Lines at(pointers, strides);
  if (at.dense()) {
    run_elements<Body>(t, pointers, begin, end);
  } else {
    run_single<Body>(t, at, begin, end);
  }
}

// What the first thread of a block prepares for the others.
template <class Body>
struct BlockState {
  typename Body::Uniform uniform;
  typename Body::Inputs inputs;
  typename Body::PerTensor t;
  bool ready;
};

// Runs shares of tensors of one body. The first thread evaluates the per-tensor
// stage, and again only where its inputs differ from those of the previous
// tensor.
template <class Body>
class BlockRunner {
 public:
  FUSE_FN BlockRunner(const GpuLaunch& launch, const double* args)
      : launch_(launch), args_(args) {
    if (threadIdx.x == 0) state().ready = false;
  }

  FUSE_LOOP void run(const Chunk& chunk) const {
    void* const* pointers = launch_.table.pointers + chunk.pointers;
    ask_for_elements(chunk, pointers);
    __syncthreads();  // others may still read the last tensor's
    if (threadIdx.x == 0) prepare(state(), chunk, pointers);
    __syncthreads();
    // The ticket is taken before the elements, so that nothing waits for it.
    const bool is_last =
        Body::stores_per_tensor && threadIdx.x == 0 && take_ticket(chunk);
    if constexpr (requires { requires Body::draws; }) {
      run_drawing<Body>(state().t, launch_.table, chunk);
    } else if constexpr (requires { typename Body::Lines; }) {
      run_line<Body>(state().t, pointers,
                     launch_.table.strides + chunk.pointers, chunk.begin,
                     chunk.end);
    } else {
      run_elements<Body>(state().t, pointers, chunk.begin, chunk.end);
    }
    // After the elements: a tensor of one element may share its memory.
    if (is_last) Body::finish(state().t, pointers);
  }

 private:
  // These loads overlap with the preparation by the first thread.
  static FUSE_FN void ask_for_elements(const Chunk& chunk,
                                       void* const* pointers) {
    if constexpr (!requires { typename Body::Lines; }) {
      const i64 first = chunk.begin + i64(threadIdx.x) * Body::pack;
      if (first >= chunk.end) return;
      Body::want(typename Body::Pointers(pointers), first);
    }
  }

  static FUSE_FN BlockState<Body>& state() {
    __shared__ BlockState<Body> of_block;
    return of_block;
  }

  FUSE_LOOP void prepare(BlockState<Body>& s, const Chunk& chunk,
                         void* const* pointers) const {
    const double* columns =
        launch_.table.columns + chunk.instance * launch_.table.column_count;
    const typename Body::Inputs inputs = Body::inputs(pointers, columns);
    if (s.ready && same(inputs, s.inputs)) return;
    if (!s.ready) s.uniform = Body::uniform(args_);
    s.inputs = inputs;
    s.t = Body::per_tensor(s.uniform, inputs);
    s.ready = true;
  }

  // Inputs are doubles without gaps between them.
  static FUSE_FN bool same(const typename Body::Inputs& a,
                           const typename Body::Inputs& b) {
    const auto* x = reinterpret_cast<const unsigned long long*>(&a);
    const auto* y = reinterpret_cast<const unsigned long long*>(&b);
    for (unsigned k = 0; k < sizeof(a) / sizeof(*x); ++k) {
      if (x[k] != y[k]) return false;
    }
    return true;
  }

  // Every share of a tensor reads its per-tensor scalars, so the last one to
  // read them stores the new ones. It also resets the ticket.
  FUSE_FN bool take_ticket(const Chunk& chunk) const {
    if (chunk.shares == 1) return true;
    unsigned* const ticket = launch_.tickets + chunk.entry;
    __threadfence();  // what was read comes before the ticket ...
    if (i64(atomicAdd(ticket, 1U)) + 1 < chunk.shares) return false;
    __threadfence();  // ... and the last ticket before what is stored
    *ticket = 0;
    return true;
  }

  const GpuLaunch& launch_;
  const double* const args_;
};

// Calls visit(chunk) for every share of this block.
template <class Visit>
FUSE_FN void for_each_chunk(const GpuLaunch& launch, Visit visit) {
  for (i64 c = blockIdx.x; c < launch.chunk_count; c += gridDim.x) {
    const Chunk chunk = launch.chunks[c];
    visit(chunk);
  }
}

}  // namespace FUSE_DEVICE
}  // namespace fuse

#endif  // FUSEBOOK_GPU_LOOPS_H
