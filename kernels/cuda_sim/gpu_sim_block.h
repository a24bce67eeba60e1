#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "fusebook/jit/jit.h"

namespace fuse {

/// The order in which the simulator runs the blocks of a grid, and the threads
/// of a block between two barriers. A correct kernel gives the same results for
/// all.
enum class SimOrder : std::uint8_t { ascending, descending, shuffled };

/// Sets the order for later launches of this process; `seed` is for `shuffled`.
void set_sim_order(SimOrder order, std::uint64_t seed = 0);

struct SimSize {
  unsigned x = 1;
  unsigned y = 1;
  unsigned z = 1;
  std::int64_t count() const { return std::int64_t(x) * y * z; }
};

/// What the host's compiler compiles to simulate the kernel `name` of a text.
std::string sim_kernel_source(const std::string& text, const std::string& name);

/// Which blocks of a grid are alive at the same time.
enum class SimBlocks : std::uint8_t {
  one_by_one,  ///< each begins when the last one has ended
  together,  ///< all, as in a cooperative launch: they may wait for each other
};

/// A kernel of CUDA text, compiled by the host's compiler. It runs thread by
/// thread on the caller's thread, each on a separate stack: at __syncthreads()
/// and __nanosleep() the next one continues. Each block has its own __shared__
/// variables.
class SimKernel {
 public:
  /// Compiles kernel `name` of `text`. Throws NoCompiler or Error like
  /// build_library.
  SimKernel(const std::string& text, const std::string& name);

  /// Sizes of the kernel's parameters in bytes.
  const std::vector<std::size_t>& parameter_sizes() const { return sizes_; }

  /// Runs all blocks. Throws Error if some threads of a block wait at a barrier
  /// that the others never reach, or sleep until something happens that never
  /// does: who waits for blocks that are not alive would wait for ever.
  void launch(SimSize grid, SimSize block, void* const* parameters,
              SimBlocks blocks = SimBlocks::one_by_one) const;

 private:
  class Alive;

  std::string name_;
  std::shared_ptr<Library> library_;
  std::vector<std::size_t> sizes_;
};

}  // namespace fuse
