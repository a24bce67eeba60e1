#include "fusebook/device/sum_on_host.h"

#include <array>

#include "fusebook/prelude/reductions.h"
#include "fusebook/runtime/parallel_for.h"

namespace fuse {

// Reductions in kernels have this order too, so that all sums are equal in bits.
static_assert(sum_lanes == reduction_lanes &&
              sum_chunk_size == reduction_chunk);

namespace {

// Less work than this is not worth another thread.
constexpr i64 least_chunks = 4;

// All lanes in one thread.
class SumLanes {
 public:
  static constexpr int rows = 2;

  template <class Visit>
  FUSE_FN void all(Visit visit) {
    each(sum_lanes, visit);
  }
  template <class Visit>
  FUSE_FN void each(int count, Visit visit) {
    FUSE_INDEPENDENT
    for (int lane = 0; lane < count; ++lane) visit(lane);
  }
  FUSE_FN double& own(int lane) { return parts_[lane]; }
  FUSE_FN double& part(int lane) { return parts_[lane]; }
  FUSE_FN void share() {}
  FUSE_FN void sync() {}

 private:
  std::array<double, sum_lanes> parts_;
};

}  // namespace

void sum_on_host(const SumWork& work) {
  const auto sum_range = [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t c = begin; c < end; ++c) {
      SumLanes lanes;
      work.sums[c] = device::sum_chunk(lanes, work, c);
    }
  };
  parallel_for(chunk_count(work), least_chunks, sum_range);
}

}  // namespace fuse
