// Precedes CUDA text that the simulator runs on the CPU: CUDA's keywords,
// defined for the host compiler. The library never includes this file, only its
// text. gpu_sim_block.cpp sets `fuse_sim`.

// A simulation spends its time between threads, not in what they compute. What the
// command line says of floating-point numbers holds all the same.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O1")
#endif

// One large function would take longer to compile than several.
#define FUSE_LOOP inline

struct SimIndex {
  unsigned x;
  unsigned y;
  unsigned z;
};
struct SimThread {
  SimIndex thread;
  SimIndex block;
  SimIndex block_size;
  SimIndex grid_size;
  void (*barrier)();
  void (*sleep)();
};
static SimThread* fuse_sim;

#define threadIdx (fuse_sim->thread)
#define blockIdx (fuse_sim->block)
#define blockDim (fuse_sim->block_size)
#define gridDim (fuse_sim->grid_size)
#define __global__
#define __device__
#define __host__
#define __grid_constant__
#define __forceinline__ inline
#define __restrict__ __restrict
#define __launch_bounds__(...)
// Nothing else is local to a thread of the host, so that the simulator finds
// what a block shares in one place, and puts another block's there.
#define __shared__ static thread_local
#define __syncthreads() fuse_sim->barrier()
#define __threadfence() ((void)0)
// Who waits for others lets them run.
#define __nanosleep(nanoseconds) fuse_sim->sleep()

struct alignas(16) float4 {
  float x;
  float y;
  float z;
  float w;
};

template <class T>
static inline T atomicAdd(T* address, T more) {
  const T before = *address;
  *address = before + more;
  return before;
}

extern "C" {
float fabsf(float);
float sqrtf(float);
double fabs(double);
double sqrt(double);
}
