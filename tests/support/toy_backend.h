#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "fusebook/cpu/cpu_kernel.h"
#include "fusebook/device/allocator.h"
#include "fusebook/device/backend.h"
#include "fusebook/device/matrix_means_on_host.h"
#include "fusebook/device/sum_on_host.h"

namespace testing {

/// Memory that is not the host's: every bit in it is the opposite of what it
/// stands for. Whoever forgets a copy, either way, has the wrong numbers.
class ToyMemory {
 public:
  void* allocate(std::size_t bytes) {
    const std::scoped_lock lock(mutex_);
    std::vector<std::byte> block(std::max<std::size_t>(bytes, 1));
    void* const data = block.data();
    blocks_.emplace(data, std::move(block));
    return data;
  }
  void release(void* data) {
    const std::scoped_lock lock(mutex_);
    blocks_.erase(data);
  }
  std::size_t blocks() {
    const std::scoped_lock lock(mutex_);
    return blocks_.size();
  }

  /// Copies across the border.
  void carry(void* to, const void* from, std::size_t bytes) {
    const std::scoped_lock lock(mutex_);
    auto* const out = static_cast<std::byte*>(to);
    const auto* const in = static_cast<const std::byte*>(from);
    for (std::size_t i = 0; i < bytes; ++i) out[i] = ~in[i];
  }

  /// Calls `run()` while everything is what it stands for.
  template <class Run>
  void upright(Run run) {
    const std::scoped_lock lock(mutex_);
    turn();
    run();
    turn();
  }

 private:
  void turn() {
    for (auto& [data, block] : blocks_) {
      for (std::byte& byte : block) byte = ~byte;
    }
  }

  std::mutex mutex_;
  std::map<void*, std::vector<std::byte>> blocks_;
};

/// What the toy was asked to do so far.
struct ToyCounters {
  std::atomic<int> kernels = 0;
  std::atomic<int> launches = 0;
  std::atomic<int> copies_to_host = 0;
};

class ToyKernel final : public fuse::Kernel {
 public:
  ToyKernel(const fuse::Plan& plan, ToyMemory& memory, ToyCounters& counters)
      : interpreter_(fuse::make_interpreter(plan)),
        memory_(memory),
        counters_(counters) {}

  void launch(const fuse::Table& table) override {
    ++counters_.launches;
    memory_.upright([&] { interpreter_->launch(table); });
  }

 private:
  std::shared_ptr<fuse::Kernel> interpreter_;
  ToyMemory& memory_;
  ToyCounters& counters_;
};

/// All that a backend has to be.
class ToyBackend final : public fuse::DeviceBackend {
 public:
  std::string name() const override { return "toy"; }
  bool is_numbered() const override { return true; }
  std::string model(int index) const override {
    return "toy number " + std::to_string(index);
  }
  void require(int index) const override {
    if (index > 1) throw fuse::Error("there are two toys");
  }

  std::shared_ptr<fuse::Storage> allocate(int, std::size_t bytes) override {
    void* const data = memory.allocate(bytes);
    auto storage = std::make_shared<fuse::Storage>(data, bytes, false);
    storage->block = std::shared_ptr<void>(
        data, [this](void* block) { memory.release(block); });
    return storage;
  }
  void copy_to_device(int, void* to, const void* from,
                      std::size_t bytes) override {
    memory.carry(to, from, bytes);
  }
  void copy_to_host(int, void* to, const void* from,
                    std::size_t bytes) override {
    ++counters.copies_to_host;
    memory.carry(to, from, bytes);
  }
  void copy_within(int, void* to, const void* from,
                   std::size_t bytes) override {
    if (bytes > 0) std::memcpy(to, from, bytes);
  }
  void fill_bytes(int, void* to, unsigned char value,
                  std::size_t bytes) override {
    if (bytes > 0) std::memset(to, ~value & 0xff, bytes);
  }
  void synchronize(int) override {}

  std::shared_ptr<fuse::Kernel> make_kernel(int,
                                            const fuse::Plan& plan) override {
    ++counters.kernels;
    return std::make_shared<ToyKernel>(plan, memory, counters);
  }
  void sum_chunks(int, const fuse::SumWork& work) override {
    memory.upright([&] { fuse::sum_on_host(work); });
  }
  int average_matrices(int, const fuse::MatrixWork& work) override {
    memory.upright([&] { fuse::average_on_host(work); });
    return 1;
  }

  ToyMemory memory;
  ToyCounters counters;
};

/// The toy, registered the first time that somebody asks for it.
struct Toy {
  ToyBackend& backend;
  fuse::Device device;
};

inline const Toy& toy() {
  static const Toy registered = [] {
    auto backend = std::make_unique<ToyBackend>();
    ToyBackend& kept = *backend;
    return Toy{kept, {fuse::register_backend(std::move(backend)), 0}};
  }();
  return registered;
}

}  // namespace testing
