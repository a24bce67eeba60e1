#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "fusebook/codegen/emit_body.h"
#include "fusebook/device/device.h"
#include "fusebook/ir/plan.h"
#include "fusebook/prelude/matrix_means.h"
#include "fusebook/prelude/sums.h"
#include "fusebook/runtime/kernel.h"

namespace fuse {

struct Storage;

/// What differs between kinds of devices: names, memory and kernels. Everything
/// else in the library goes through the backend of a tensor's device.
///
/// `index` is the number of a device within its kind. Work runs in the order in
/// which it was issued; functions that return numbers to the host wait for it.
/// Thread-safe.
class DeviceBackend {
 public:
  DeviceBackend() = default;
  DeviceBackend(const DeviceBackend&) = delete;
  DeviceBackend& operator=(const DeviceBackend&) = delete;
  virtual ~DeviceBackend() = default;

  // -- names

  /// The name of the kind, as `parse_device` accepts it: "cuda".
  virtual std::string name() const = 0;
  /// True if devices are distinguished by a number, as in "cuda:1".
  virtual bool is_numbered() const { return false; }
  /// The model and its driver, for records: "NVIDIA H200, CUDA 13.0".
  virtual std::string model(int index) const = 0;
  /// The architecture kernels are compiled for, "sm_90"; empty for the host's
  /// own.
  virtual std::string architecture(int /*index*/) const { return ""; }
  /// Throws Error unless the device can hold tensors and run kernels.
  virtual void require(int /*index*/) const {}

  // -- memory; `bytes` may be 0

  /// True if its memory is the host's, so that the host may dereference
  /// addresses.
  virtual bool is_host() const { return false; }
  /// The alignment in bytes that kernels require for elements of this size.
  virtual std::size_t alignment(std::size_t element_size) const {
    return element_size;
  }
  /// At least `bytes` bytes, uninitialised. Throws Error if out of memory.
  virtual std::shared_ptr<Storage> allocate(int index, std::size_t bytes) = 0;
  /// Copies from host memory, which may be changed as soon as this returns.
  virtual void copy_to_device(int index, void* to, const void* from,
                              std::size_t bytes) = 0;
  /// Copies to host memory; the copy is complete when this returns.
  virtual void copy_to_host(int index, void* to, const void* from,
                            std::size_t bytes) = 0;
  /// Copies within the device; source and target must not overlap.
  virtual void copy_within(int index, void* to, const void* from,
                           std::size_t bytes) = 0;
  /// Sets every byte.
  virtual void fill_bytes(int index, void* to, unsigned char value,
                          std::size_t bytes) = 0;
  /// Waits until all issued work has run.
  virtual void synchronize(int index) = 0;

  // -- turns with other libraries, for devices that have streams; null is
  // CUDA's legacy stream

  /// Work issued from now on runs after what is on `stream` by now. The host
  /// does not wait. Throws Error if the stream is being captured in a graph.
  virtual void run_after(int /*index*/, void* /*stream*/) {}
  /// What is put on `stream` from now on runs after all work issued so far.
  /// Throws like run_after.
  virtual void run_before(int /*index*/, void* /*stream*/) {}

  // -- kernels

  /// The language of the kernels' source.
  virtual Target target() const { return Target::cpu; }
  /// A kernel that runs the plan over lists on the device. Throws Error if it
  /// cannot be compiled.
  virtual std::shared_ptr<Kernel> make_kernel(int index, const Plan& plan) = 0;
  /// The same for a plan that is not worth compiling, if there is a choice.
  virtual std::shared_ptr<Kernel> make_quick_kernel(int index,
                                                    const Plan& plan) {
    return make_kernel(index, plan);
  }
  /// Sums chunks in the order defined by prelude/sums.h. All addresses are on
  /// the device.
  virtual void sum_chunks(int index, const SumWork& work) = 0;
  /// Averages rows and columns in the order defined by prelude/matrix_means.h;
  /// returns how many launches that took. All addresses are on the device.
  virtual int average_matrices(int index, const MatrixWork& work) = 0;
};

/// The backend of a device. Throws Error for Kind::registered before one is
/// registered.
DeviceBackend& backend_of(const Device& device);

/// Adds a backend for the lifetime of the process and returns the kind of its
/// devices. Only one can be added to those of the library; throws Error for a
/// second one.
Device::Kind register_backend(std::unique_ptr<DeviceBackend> backend);

/// All kinds that have a backend, in the order of their numbers.
std::vector<Device::Kind> device_kinds();

}  // namespace fuse
