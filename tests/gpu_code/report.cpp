// What programs find on this machine to run on a GPU: lines for
// `./fusebook doctor`. Nothing of that need be there.
#include <cstdio>
#include <exception>
#include <string>

#include "fusebook/nvrtc/cuda_platform.h"
#include "fusebook/nvrtc/nvrtc_api.h"

namespace {

void line(const char* state, const char* name, const std::string& what) {
  std::printf("  %-8s %-9s %s\n", state, name, what.c_str());
}

std::string capability_text(int number) {
  return std::to_string(number / 10) + "." + std::to_string(number % 10);
}

void report(const fuse::GpuDevice& device) {
  const auto mebibytes = device.memory_bytes >> 20;
  line("", "",
       "cuda:" + std::to_string(device.ordinal) + " is " + device.name +
           ", compute capability " + capability_text(device.capability) + ", " +
           std::to_string(mebibytes) + " MiB");
}

void report_driver(const fuse::GpuStatus& status) {
  const std::string serves =
      "a driver for CUDA " + fuse::cuda_version_text(status.driver_version);
  if (status.usable()) {
    line("ok", "cuda", serves);
  } else {
    line("none", "cuda", status.problem);
  }
  for (const auto& device : status.devices) report(device);
}

// As programs choose it: none that is newer than the driver.
void report_nvrtc(int driver_version) {
  try {
    const fuse::Nvrtc nvrtc = driver_version > 0
                                  ? fuse::load_nvrtc(driver_version / 1000)
                                  : fuse::load_nvrtc();
    std::string what = std::to_string(nvrtc.major) + "." +
                       std::to_string(nvrtc.minor) + " (" + nvrtc.library + ")";
    if (!nvrtc.architectures.empty()) {
      what += ", compute capability " +
              capability_text(nvrtc.architectures.front()) + " to " +
              capability_text(nvrtc.architectures.back());
    }
    line("ok", "NVRTC", what);
  } catch (const std::exception& error) {
    // What was tried stands on further lines.
    const std::string all = error.what();
    line("none", "NVRTC", all.substr(0, all.find('\n')));
  }
}

}  // namespace

int main() {
  const fuse::GpuStatus status = fuse::cuda_platform().status();
  report_driver(status);
  report_nvrtc(status.driver_version);
}
