#include "fusebook/device/backend.h"

#include <array>
#include <atomic>
#include <mutex>

#include "fusebook/device/cpu_backend.h"
#include "fusebook/device/gpu_backend.h"
#include "fusebook/support/error.h"

namespace fuse {
namespace {

// memory_code has two bits for the kind.
constexpr std::array kinds = {Device::Kind::cpu, Device::Kind::cuda,
                              Device::Kind::cuda_sim, Device::Kind::registered};

/// Backends by the number of their kind; none is ever removed.
class Backends {
 public:
  Backends() {
    put(Device::Kind::cpu, make_cpu_backend());
    put(Device::Kind::cuda, make_cuda_backend());
    put(Device::Kind::cuda_sim, make_simulator_backend());
  }

  DeviceBackend* find(Device::Kind kind) const {
    return all_[std::size_t(kind)].load(std::memory_order_acquire);
  }

  Device::Kind add(std::unique_ptr<DeviceBackend> backend) {
    const std::scoped_lock lock(adding_);
    constexpr auto kind = Device::Kind::registered;
    if (const DeviceBackend* const first = find(kind)) {
      throw Error("register_backend: cannot register '" + backend->name() +
                  "'; '" + first->name() + "' is already registered");
    }
    put(kind, std::move(backend));
    return kind;
  }

 private:
  void put(Device::Kind kind, std::unique_ptr<DeviceBackend> backend) {
    all_[std::size_t(kind)].store(backend.release(), std::memory_order_release);
  }

  std::mutex adding_;
  std::array<std::atomic<DeviceBackend*>, kinds.size()> all_{};
};

Backends& backends() {
  // Never destroyed: tensors with static lifetime may outlive it otherwise.
  static auto* const all = new Backends;
  return *all;
}

}  // namespace

DeviceBackend& backend_of(const Device& device) {
  DeviceBackend* const found = backends().find(device.kind);
  if (found != nullptr) return *found;
  throw Error(
      "a device of kind `registered` has no backend; call register_backend "
      "first");
}

Device::Kind register_backend(std::unique_ptr<DeviceBackend> backend) {
  if (backend == nullptr) throw Error("register_backend: the backend is null");
  return backends().add(std::move(backend));
}

std::vector<Device::Kind> device_kinds() {
  std::vector<Device::Kind> all;
  for (const Device::Kind kind : kinds) {
    if (backends().find(kind) != nullptr) all.push_back(kind);
  }
  return all;
}

}  // namespace fuse
