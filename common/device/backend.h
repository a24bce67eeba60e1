#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "fusebook/codegen/emit_body.h"
#include "fusebook/device/device.h"
#include "fusebook/ir/plan.h"
#include "fusebook/prelude/sums.h"
#include "fusebook/runtime/kernel.h"

namespace fuse {

struct Storage;

/// What differs from one kind of device to another: names, memory and kernels.
/// Everything else in the library asks the backend of a tensor's device.
///
/// `index` is the number of a device among those of its kind. Work is done in the
/// order in which it was asked for; what returns numbers to the host waits for
/// it. Safe to call from any thread.
class DeviceBackend {
 public:
  DeviceBackend() = default;
  DeviceBackend(const DeviceBackend&) = delete;
  DeviceBackend& operator=(const DeviceBackend&) = delete;
  virtual ~DeviceBackend() = default;

  // -- names

  /// The word for the kind, as `parse_device` takes it: "cuda".
  virtual std::string name() const = 0;
  /// True when devices are told apart by a number, as in "cuda:1".
  virtual bool is_numbered() const { return false; }
  /// What it is and what drives it, for records: "NVIDIA H200, CUDA 13.0".
  virtual std::string model(int index) const = 0;
  /// What kernels are compiled for, "sm_90"; empty where it goes without saying.
  virtual std::string architecture(int /*index*/) const { return ""; }
  /// Throws Error unless tensors can lie and kernels run there.
  virtual void require(int /*index*/) const {}

  // -- memory; `bytes` may be 0

  /// True when its memory is the host's, whose addresses the host may follow.
  virtual bool is_host() const { return false; }
  /// Kernels take elements of this size at multiples of so many bytes.
  virtual std::size_t alignment(std::size_t element_size) const {
    return element_size;
  }
  /// At least `bytes` bytes, uninitialised. Throws Error when they cannot be had.
  virtual std::shared_ptr<Storage> allocate(int index, std::size_t bytes) = 0;
  /// Copies from host memory, which may change as soon as this returns.
  virtual void copy_to_device(int index, void* to, const void* from,
                              std::size_t bytes) = 0;
  /// Copies to host memory; the bytes are there when this returns.
  virtual void copy_to_host(int index, void* to, const void* from,
                            std::size_t bytes) = 0;
  /// Copies within the device; source and target do not overlap.
  virtual void copy_within(int index, void* to, const void* from,
                           std::size_t bytes) = 0;
  /// Sets every byte.
  virtual void fill_bytes(int index, void* to, unsigned char value,
                          std::size_t bytes) = 0;
  /// Waits until everything has run that was asked for.
  virtual void synchronize(int index) = 0;

  // -- kernels

  /// The language of the text that kernels are compiled from.
  virtual Target target() const { return Target::cpu; }
  /// A kernel that runs the plan over lists on the device. Throws Error when it
  /// cannot be compiled.
  virtual std::shared_ptr<Kernel> make_kernel(int index, const Plan& plan) = 0;
  /// The same for a plan that is not worth a compiler's time, where there is a
  /// choice.
  virtual std::shared_ptr<Kernel> make_quick_kernel(int index,
                                                    const Plan& plan) {
    return make_kernel(index, plan);
  }
  /// Sums of chunks in the order that prelude/sums.h fixes. All addresses lie on
  /// the device.
  virtual void sum_chunks(int index, const SumWork& work) = 0;
};

/// The backend of a device. Throws Error for Kind::registered while there is none.
DeviceBackend& backend_of(const Device& device);

/// Adds a backend for as long as the process lives and returns the kind of its
/// devices. There is room for one beside those of the library; throws Error for
/// a second one.
Device::Kind register_backend(std::unique_ptr<DeviceBackend> backend);

/// All kinds that have a backend, in the order of their numbers.
std::vector<Device::Kind> device_kinds();

}  // namespace fuse
