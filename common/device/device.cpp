#include "fusebook/device/device.h"

#include <atomic>

#include "fusebook/support/error.h"

namespace fuse {
namespace {

// Kind and index in one word, so that any thread may read it.
std::atomic<std::uint64_t> chosen_device = 0;

bool is_index(const std::string& text) {
  return !text.empty() && text.size() < 6 &&
         text.find_first_not_of("0123456789") == std::string::npos;
}

}  // namespace

std::string to_string(const Device& device) {
  if (device.kind == Device::Kind::cpu) return "cpu";
  if (device.kind == Device::Kind::cuda_sim) return "cuda-sim";
  return "cuda:" + std::to_string(device.index);
}

Device parse_device(const std::string& name) {
  if (name == "cpu") return {};
  if (name == "cuda-sim") return {Device::Kind::cuda_sim, 0};
  if (name == "cuda") return {Device::Kind::cuda, 0};
  if (name.starts_with("cuda:") && is_index(name.substr(5))) {
    return {Device::Kind::cuda, std::stoi(name.substr(5))};
  }
  throw UsageError("'" + name +
                   "' is no device; give cpu, cuda, cuda:N or cuda-sim");
}

Device default_device() {
  const std::uint64_t word = chosen_device;
  return {Device::Kind(word & 0xffU), int(word >> 8U)};
}

void set_default_device(const Device& device) {
  chosen_device = std::uint64_t(device.kind) | std::uint64_t(device.index)
                                                   << 8U;
}

}  // namespace fuse
