#include "fusebook/nvrtc/nvrtc_compiler.h"

#include <fmt/core.h>

#include <atomic>
#include <mutex>
#include <optional>
#include <sstream>
#include <utility>

#include "fusebook/cuda/cuda_api.h"
#include "fusebook/jit/disk_cache.h"
#include "fusebook/nvrtc/nvrtc_compile.h"
#include "fusebook/prelude/gpu_layout.h"

namespace fuse {
namespace {

std::atomic<long> compiler_runs = 0;
std::atomic<long> disk_hits = 0;

std::string cache_key(const Nvrtc& nvrtc, const GpuTarget& target,
                      const std::string& source) {
  std::string key = fmt::format(
      "Fusebook GPU kernel, format 1\nNVRTC {}.{}\noptions:", nvrtc.major,
      nvrtc.minor);
  for (const std::string& option : nvrtc_options(nvrtc, target)) {
    key += " " + option;
  }
  return key + "\nsource:\n" + source;
}

// The format of a cache entry: one line of statistics, then the code.
std::string pack(const ModuleImage& image) {
  const GpuResources& of = image.resources;
  std::ostringstream text;
  text << of.registers << ' ' << of.spill_stores << ' ' << of.spill_loads << ' '
       << of.shared_bytes << '\n';
  return text.str() + image.bytes;
}

std::optional<ModuleImage> unpack(const std::string& entry) {
  const std::size_t end = entry.find('\n');
  if (end == entry.npos) return std::nullopt;
  ModuleImage image;
  GpuResources& of = image.resources;
  std::istringstream text(entry.substr(0, end));
  text >> of.registers >> of.spill_stores >> of.spill_loads >> of.shared_bytes;
  if (!text) return std::nullopt;
  image.bytes = entry.substr(end + 1);
  return image;
}

std::optional<ModuleImage> load(const KernelCache& cache,
                                const std::string& key) {
  const auto entry = cache.load(key);
  return entry ? unpack(*entry) : std::nullopt;
}

void store(const KernelCache& cache, const std::string& key,
           const ModuleImage& image) {
  const ScratchDirectory scratch = cache.make_scratch();
  if (!scratch.path().empty()) cache.store(key, pack(image), scratch.path());
}

class NvrtcCompiler final : public ModuleCompiler {
 public:
  explicit NvrtcCompiler(std::function<Nvrtc()> open_nvrtc)
      : open_nvrtc_(std::move(open_nvrtc)) {}

  ModuleImage compile(const std::string& source, int capability) override {
    const Nvrtc& nvrtc = opened();
    const GpuTarget target = choose_target(nvrtc, capability);
    const std::string key = cache_key(nvrtc, target, source);
    const KernelCache cache = KernelCache::open();
    if (auto image = load(cache, key)) {
      ++disk_hits;
      return *std::move(image);
    }
    ++compiler_runs;
    ModuleImage image =
        compile_gpu_code(nvrtc, source, gpu_kernel_name, target);
    store(cache, key, image);
    return image;
  }

  void check(int capability) override {
    static_cast<void>(choose_target(opened(), capability));
  }

 private:
  const Nvrtc& opened() {
    const std::lock_guard lock(mutex_);
    if (!nvrtc_) nvrtc_ = open_nvrtc_();
    return *nvrtc_;
  }

  const std::function<Nvrtc()> open_nvrtc_;
  std::mutex mutex_;
  std::optional<Nvrtc> nvrtc_;
};

// A driver accepts code from its own CUDA version and older ones.
Nvrtc load_nvrtc_for_driver() {
  const CudaDriver driver = load_cuda_driver();
  int version = 0;
  if (driver.api == nullptr ||
      driver.api->driver_get_version(&version) != cuda::success) {
    return load_nvrtc();
  }
  return load_nvrtc(version / 1000);
}

}  // namespace

std::shared_ptr<ModuleCompiler> make_nvrtc_compiler() {
  return make_nvrtc_compiler(load_nvrtc_for_driver);
}

std::shared_ptr<ModuleCompiler> make_nvrtc_compiler(
    std::function<Nvrtc()> open_nvrtc) {
  return std::make_shared<NvrtcCompiler>(std::move(open_nvrtc));
}

NvrtcCounters nvrtc_counters() { return {compiler_runs, disk_hits}; }

}  // namespace fuse
