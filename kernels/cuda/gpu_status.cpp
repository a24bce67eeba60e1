#include "fusebook/cuda/gpu_status.h"

#include <fmt/core.h>

#include <array>

#include "fusebook/cuda/gpu_error.h"

namespace fuse {
namespace {

GpuStatus absent(GpuAbsence absence, std::string problem) {
  GpuStatus status;
  status.absence = absence;
  status.problem = std::move(problem);
  return status;
}

GpuStatus no_library(const CudaDriver& driver) {
  if (driver.too_old) {
    return absent(GpuAbsence::driver_too_old,
                  "the NVIDIA driver is too old: " + driver.problem +
                      "; install a driver for CUDA 12 or newer");
  }
  return absent(GpuAbsence::no_driver,
                "no NVIDIA driver was found: " + driver.problem +
                    "; install the driver, or use --device cpu");
}

// Interprets a failed start of the driver.
GpuStatus start_failed(const CudaApi& api, const char* call, int code) {
  const std::string why =
      std::string(call) + " returned " + code_text(api, code);
  switch (code) {
    case cuda::no_device:
      return absent(GpuAbsence::no_device,
                    "the NVIDIA driver finds no GPU (" + why +
                        "); check nvidia-smi and CUDA_VISIBLE_DEVICES");
    case cuda::stub_library:
      return absent(GpuAbsence::no_driver,
                    "the NVIDIA driver found is the toolkit's stub "
                    "(" +
                        why +
                        "); remove the 'stubs' directory from "
                        "LD_LIBRARY_PATH and install the driver");
    case cuda::system_driver_mismatch:
    case cuda::compat_not_supported:
      return absent(GpuAbsence::driver_too_old,
                    "the NVIDIA driver's library and its kernel module do not "
                    "match (" +
                        why +
                        "); reboot after a driver update, or reinstall the "
                        "driver");
    default:
      return absent(GpuAbsence::driver_failed,
                    "the NVIDIA driver cannot be started (" + why +
                        "); check that nvidia-smi works");
  }
}

GpuStatus too_old(int version) {
  GpuStatus status =
      absent(GpuAbsence::driver_too_old,
             "the NVIDIA driver is too old: it supports CUDA " +
                 cuda_version_text(version) +
                 " but Fusebook needs 12.0; install a newer driver");
  status.driver_version = version;
  return status;
}

// A series of calls that stops at the first failure and keeps its name.
class Questions {
 public:
  bool ask(int code, const char* call) {
    if (code_ == cuda::success && code != cuda::success) {
      code_ = code;
      call_ = call;
    }
    return code_ == cuda::success;
  }
  bool failed() const { return code_ != cuda::success; }
  int code() const { return code_; }
  const char* call() const { return call_; }

 private:
  int code_ = cuda::success;
  const char* call_ = "";
};

int ask_attribute(const CudaApi& api, cuda::Device device, int attribute,
                  Questions* asked) {
  int value = 0;
  if (!asked->failed()) {
    asked->ask(api.device_get_attribute(&value, attribute, device),
               "cuDeviceGetAttribute");
  }
  return value;
}

GpuDevice ask_device(const CudaApi& api, int ordinal, Questions* asked) {
  GpuDevice found;
  found.ordinal = ordinal;
  cuda::Device device = 0;
  std::array<char, 256> name{};
  std::size_t bytes = 0;
  if (asked->ask(api.device_get(&device, ordinal), "cuDeviceGet") &&
      asked->ask(api.device_get_name(name.data(), int(name.size() - 1), device),
                 "cuDeviceGetName")) {
    asked->ask(api.device_total_mem(&bytes, device), "cuDeviceTotalMem");
  }
  const auto attribute = [&](int which) {
    return ask_attribute(api, device, which, asked);
  };
  found.name = name.data();
  found.memory_bytes = static_cast<long long>(bytes);
  found.capability = 10 * attribute(cuda::attribute_capability_major) +
                     attribute(cuda::attribute_capability_minor);
  found.multiprocessors = attribute(cuda::attribute_multiprocessor_count);
  found.max_block_threads = attribute(cuda::attribute_max_threads_per_block);
  found.l2_bytes = attribute(cuda::attribute_l2_cache_size);
  return found;
}

}  // namespace

std::string cuda_version_text(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

GpuStatus look_for_gpus(const CudaDriver& driver) {
  if (driver.api == nullptr) return no_library(driver);
  const CudaApi& api = *driver.api;
  // The version is available before anything is started.
  int version = 0;
  if (const int code = api.driver_get_version(&version); code != 0) {
    return start_failed(api, "cuDriverGetVersion", code);
  }
  if (version < cuda::oldest_driver) return too_old(version);
  if (const int code = api.init(0); code != 0) {
    GpuStatus status = start_failed(api, "cuInit", code);
    status.driver_version = version;
    return status;
  }
  int count = 0;
  Questions asked;
  asked.ask(api.device_get_count(&count), "cuDeviceGetCount");
  if (!asked.failed() && count == 0) {
    asked.ask(cuda::no_device, "cuDeviceGetCount");
  }
  GpuStatus status;
  for (int i = 0; i < count && !asked.failed(); ++i) {
    status.devices.push_back(ask_device(api, i, &asked));
  }
  if (asked.failed()) status = start_failed(api, asked.call(), asked.code());
  status.driver_version = version;
  return status;
}

}  // namespace fuse
