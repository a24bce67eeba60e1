#include "fusebook/nvrtc/nvrtc_compiler.h"

#include <fmt/core.h>

#include <atomic>
#include <mutex>
#include <optional>
#include <utility>

#include "fusebook/cuda/cuda_api.h"
#include "fusebook/jit/disk_cache.h"
#include "fusebook/nvrtc/nvrtc_compile.h"
#include "fusebook/nvrtc/packed_images.h"
#include "fusebook/prelude/gpu_layout.h"

namespace fuse {
namespace {

std::atomic<long> compiler_runs = 0;
std::atomic<long> disk_hits = 0;
std::atomic<long> pack_hits = 0;

std::string cache_key(const Nvrtc& nvrtc, const GpuTarget& target,
                      const std::string& source) {
  std::string key = fmt::format(
      "Fusebook GPU kernel, format 1\nNVRTC {}.{}\noptions:", nvrtc.major,
      nvrtc.minor);
  for (const std::string& option : nvrtc_options(nvrtc.major, target)) {
    key += " " + option;
  }
  return key + "\nsource:\n" + source;
}

std::optional<ModuleImage> load(const KernelCache& cache,
                                const std::string& key) {
  const auto entry = cache.load(key);
  return entry ? unpack_image(*entry) : std::nullopt;
}

void store(const KernelCache& cache, const std::string& key,
           const ModuleImage& image) {
  const ScratchDirectory scratch = cache.make_scratch();
  if (!scratch.path().empty())
    cache.store(key, pack_image(image), scratch.path());
}

class NvrtcCompiler final : public ModuleCompiler {
 public:
  NvrtcCompiler(std::function<Nvrtc()> open_nvrtc, int newest_major)
      : open_nvrtc_(std::move(open_nvrtc)), newest_major_(newest_major) {}

  ModuleImage compile(const std::string& source, int capability) override {
    if (auto image = find_packed_image(source, capability, newest_major_)) {
      ++pack_hits;
      return *std::move(image);
    }
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
    if (have_packed_images(capability, newest_major_)) return;
    static_cast<void>(choose_target(opened(), capability));
  }

 private:
  const Nvrtc& opened() {
    const std::lock_guard lock(mutex_);
    if (!nvrtc_) nvrtc_ = open_nvrtc_();
    return *nvrtc_;
  }

  const std::function<Nvrtc()> open_nvrtc_;
  const int newest_major_;
  std::mutex mutex_;
  std::optional<Nvrtc> nvrtc_;
};

// A driver accepts code from its own CUDA version and older ones.
int newest_major_of_driver() {
  const CudaDriver driver = load_cuda_driver();
  int version = 0;
  if (driver.api == nullptr ||
      driver.api->driver_get_version(&version) != cuda::success) {
    return newest_cuda_major;
  }
  return version / 1000;
}

}  // namespace

std::shared_ptr<ModuleCompiler> make_nvrtc_compiler() {
  const int newest = newest_major_of_driver();
  return make_nvrtc_compiler([newest] { return load_nvrtc(newest); }, newest);
}

std::shared_ptr<ModuleCompiler> make_nvrtc_compiler(
    std::function<Nvrtc()> open_nvrtc, int newest_major) {
  return std::make_shared<NvrtcCompiler>(std::move(open_nvrtc), newest_major);
}

NvrtcCounters nvrtc_counters() { return {compiler_runs, disk_hits, pack_hits}; }

}  // namespace fuse
