// A barrier of all blocks of a grid, which all have to be alive: a cooperative
// launch. In front of gpu_reductions.h; never included by the library itself, only
// its text is.
//
// A block that has arrived counts itself; the last one sets the count back and
// begins the next generation, which the others wait for. So the barrier is as it
// was when all have passed, and serves the next phase and the next launch, whatever
// its grid is.
//
// What one thread has stored before, every thread may load after: threads of a
// block meet at __syncthreads(); the first of them then makes a fence and a strong
// write (the count), which releases all that they did. Who reads that value, by
// adding to it or by volatile loads of the generation that the last one wrote after
// it, and then makes a fence, acquires it, and passes it on to its own block at the
// second __syncthreads(). Fences are cumulative, so that it holds from any block to
// any other, and a fence of the whole device also lets caches that only one
// multiprocessor has forget what they hold. Nothing that is stored in an early phase
// and loaded in a late one may be loaded as constant (__ldg, or from what is const
// and __restrict__): such loads know no order.
#ifndef FUSEBOOK_GPU_BARRIER_H
#define FUSEBOOK_GPU_BARRIER_H

namespace fuse {
namespace FUSE_DEVICE {

// Every thread of every block has to come here.
FUSE_FN void wait_for_grid(GridBarrier* barrier) {
  __syncthreads();
  if (threadIdx.x == 0) {
    volatile unsigned* const generation = &barrier->generation;
    // It cannot end before this block has arrived.
    const unsigned mine = *generation;
    __threadfence();  // what was done comes before the count
    if (atomicAdd(&barrier->arrived, 1U) + 1 == gridDim.x) {
      *static_cast<volatile unsigned*>(&barrier->arrived) = 0;
      __threadfence();  // the others' counts before the next generation
      *generation = mine + 1;
    } else {
      while (*generation == mine) __nanosleep(32);
    }
    __threadfence();  // the next generation before what is read
  }
  __syncthreads();
}

}  // namespace FUSE_DEVICE
}  // namespace fuse

#endif  // FUSEBOOK_GPU_BARRIER_H
