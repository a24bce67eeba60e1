// The kernel that sums on a GPU: a block of threads for each chunk, a thread
// for each lane. It follows cpu_loops.h and sums.h; the library never includes
// it, only its text.
#ifndef FUSEBOOK_GPU_SUMS_H
#define FUSEBOOK_GPU_SUMS_H

namespace fuse {
namespace FUSE_DEVICE {

class SumBlock {
 public:
  // Memory latency is high, so several loads must be in flight.
  static constexpr int rows = 4;

  template <class Visit>
  FUSE_FN void all(Visit visit) const {
    visit(int(threadIdx.x));
  }
  template <class Visit>
  FUSE_FN void each(int count, Visit visit) const {
    if (int(threadIdx.x) < count) visit(int(threadIdx.x));
  }
  FUSE_FN double& own(int) { return own_; }
  FUSE_FN void share() const {
    __syncthreads();  // others may still read the sum of the last chunk
    part(int(threadIdx.x)) = own_;
    __syncthreads();
  }
  FUSE_FN void sync() const { __syncthreads(); }
  static FUSE_FN double& part(int lane) {
    __shared__ double parts[sum_lanes];
    return parts[lane];
  }

 private:
  double own_;
};

}  // namespace FUSE_DEVICE
}  // namespace fuse

extern "C" __global__ void __launch_bounds__(256)
    sum_chunks(const __grid_constant__ fuse::SumWork work) {
  fuse::device::SumBlock block;
  for (fuse::i64 c = blockIdx.x; c * work.chunk < work.count; c += gridDim.x) {
    const double sum = fuse::device::sum_chunk(block, work, c);
    if (threadIdx.x == 0) work.sums[c] = sum;
  }
}

#endif  // FUSEBOOK_GPU_SUMS_H
