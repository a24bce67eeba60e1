#include "fusebook/device/device.h"

#include <fmt/core.h>

#include <atomic>
#include <optional>
#include <vector>

#include "fusebook/device/backend.h"
#include "fusebook/support/error.h"

namespace fuse {
namespace {

// Kind and index in one word, so that any thread may read it.
std::atomic<std::uint64_t> chosen_device = 0;

bool is_index(const std::string& text) {
  return !text.empty() && text.size() < 6 &&
         text.find_first_not_of("0123456789") == std::string::npos;
}

// The index of the named device, if it belongs to the backend.
std::optional<int> index_in(const DeviceBackend& backend,
                            const std::string& name) {
  const std::string word = backend.name();
  if (name == word) return 0;
  if (!backend.is_numbered() || !name.starts_with(word + ":")) return {};
  const std::string number = name.substr(word.size() + 1);
  if (!is_index(number)) return {};
  return std::stoi(number);
}

// "a, b or c"
std::string one_of(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text += i + 1 < names.size() ? ", " : " or ";
    text += names[i];
  }
  return text;
}

}  // namespace

std::string to_string(const Device& device) {
  const DeviceBackend& backend = backend_of(device);
  return backend.is_numbered()
             ? fmt::format("{}:{}", backend.name(), device.index)
             : backend.name();
}

Device parse_device(const std::string& name) {
  std::vector<std::string> names;
  for (const Device::Kind kind : device_kinds()) {
    const DeviceBackend& backend = backend_of({kind, 0});
    if (const auto index = index_in(backend, name)) return {kind, *index};
    names.push_back(backend.name());
    if (backend.is_numbered()) names.push_back(backend.name() + ":N");
  }
  throw UsageError("'" + name + "' is not a device; use " + one_of(names));
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
