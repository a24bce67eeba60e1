#include "fusebook/nvrtc/packed_images.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <sstream>
#include <tuple>
#include <vector>

#include "fusebook/jit/pack_file.h"
#include "fusebook/jit/packed_kernels.h"

namespace fuse {
namespace {

struct Packed {
  GpuTarget target;
  int cuda_major = 0;
};

std::string text_of(const Packed& packed) {
  return fmt::format("gpu {}, CUDA {}", packed.target.text(),
                     packed.cuda_major);
}

std::optional<Packed> read_target(const std::string& text) {
  Packed packed;
  GpuTarget& target = packed.target;
  for (const bool exact : {true, false}) {
    const char* const format =
        exact ? "gpu sm_%d, CUDA %d" : "gpu compute_%d, CUDA %d";
    const int read = std::sscanf(text.c_str(), format, &target.architecture,
                                 &packed.cuda_major);
    target.exact = exact;
    if (read == 2 && text == text_of(packed)) return packed;
  }
  return std::nullopt;
}

bool suits(const Packed& packed, int capability, int newest_major) {
  const int architecture = packed.target.architecture;
  return packed.cuda_major <= newest_major &&
         (packed.target.exact ? architecture == capability
                              : architecture <= capability);
}

// Machine code before PTX, what is closer to the device before what is older.
bool is_better(const Packed& a, const Packed& b) {
  const auto rank = [](const Packed& of) {
    return std::tuple(of.target.exact, of.target.architecture, of.cuda_major);
  };
  return rank(a) > rank(b);
}

std::vector<Packed> what_suits(int capability, int newest_major) {
  std::vector<Packed> found;
  for (const std::string& text : packed_targets()) {
    const auto packed = read_target(text);
    if (packed && suits(*packed, capability, newest_major)) {
      found.push_back(*packed);
    }
  }
  std::sort(found.begin(), found.end(), is_better);
  return found;
}

}  // namespace

// The format of a cache entry: one line of statistics, then the code.
std::string pack_image(const ModuleImage& image) {
  const GpuResources& of = image.resources;
  std::ostringstream text;
  text << of.registers << ' ' << of.spill_stores << ' ' << of.spill_loads << ' '
       << of.shared_bytes << '\n';
  return text.str() + image.bytes;
}

std::optional<ModuleImage> unpack_image(std::string_view entry) {
  const std::size_t end = entry.find('\n');
  if (end == entry.npos) return std::nullopt;
  ModuleImage image;
  GpuResources& of = image.resources;
  std::istringstream text(std::string(entry.substr(0, end)));
  text >> of.registers >> of.spill_stores >> of.spill_loads >> of.shared_bytes;
  if (!text) return std::nullopt;
  image.bytes = entry.substr(end + 1);
  return image;
}

std::string packed_image_key(const GpuTarget& target, int cuda_major,
                             const std::string& source) {
  return pack_key(text_of({target, cuda_major}),
                  nvrtc_options(cuda_major, target), source);
}

std::optional<ModuleImage> find_packed_image(const std::string& source,
                                             int capability, int newest_major) {
  for (const Packed& packed : what_suits(capability, newest_major)) {
    const std::string_view entry =
        find_packed(packed_image_key(packed.target, packed.cuda_major, source));
    if (entry.data() == nullptr) continue;
    if (auto image = unpack_image(entry)) return image;
  }
  return std::nullopt;
}

bool have_packed_images(int capability, int newest_major) {
  return !what_suits(capability, newest_major).empty();
}

}  // namespace fuse
