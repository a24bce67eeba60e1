#include "fusebook/nvrtc/packed_images.h"

#include <doctest/doctest.h>

#include <optional>
#include <string>
#include <vector>

#include "fusebook/cuda/gpu_error.h"
#include "fusebook/jit/pack_file.h"
#include "fusebook/nvrtc/nvrtc_compiler.h"
#include "fusebook/prelude/gpu_layout.h"
#include "support/jit_testing.h"

using fuse::GpuResources;
using fuse::GpuTarget;
using fuse::ModuleImage;
using fuse::NoGpu;
using jit_testing::Env;
using jit_testing::TempDir;

namespace {

// A kernel compiled ahead, whose code tells what for.
struct Packed {
  GpuTarget target;
  int cuda_major;
};

std::string code_of(const Packed& packed) {
  std::string code =
      packed.target.text() + " " + std::to_string(packed.cuda_major);
  return code + std::string(1, '\0');  // as PTX ends
}

constexpr GpuResources resources = {33, 4, 8, 0};

// A file of these, for the source "kernel", that the environment names.
struct Pack {
  TempDir dir;
  Env kernels{"FUSEBOOK_KERNELS", dir / "gpu.pack"};
  Env cache{"FUSEBOOK_CACHE_DIR", "off"};

  explicit Pack(const std::vector<Packed>& all) {
    std::vector<fuse::PackedKernel> packed;
    for (const Packed& each : all) {
      packed.push_back(
          {fuse::packed_image_key(each.target, each.cuda_major, "kernel"),
           fuse::pack_image({code_of(each), resources})});
    }
    jit_testing::write_text(dir / "gpu.pack", fuse::pack_file(packed));
    chmod((dir / "gpu.pack").c_str(), 0644);
  }
};

// What a machine without NVRTC, whose driver has that version, runs.
std::string taken(int capability, int newest_major = 13) {
  const auto compiler = fuse::make_nvrtc_compiler(
      []() -> fuse::Nvrtc { throw NoGpu("no NVRTC"); }, newest_major);
  try {
    compiler->check(capability);
    const ModuleImage image = compiler->compile("kernel", capability);
    CHECK(image.resources == resources);
    return image.bytes.substr(0, image.bytes.find('\0'));
  } catch (const NoGpu& error) {
    return error.what();
  }
}

}  // namespace

TEST_CASE("a packed kernel for a GPU needs no NVRTC") {
  const Pack pack({{{80, true}, 13}, {{90, true}, 13}});
  const auto before = fuse::nvrtc_counters();
  CHECK(taken(90) == "sm_90 13");
  CHECK(taken(80) == "sm_80 13");
  const auto after = fuse::nvrtc_counters();
  CHECK(after.pack_hits == before.pack_hits + 2);
  CHECK(after.compiler_runs == before.compiler_runs);
  CHECK(after.disk_hits == before.disk_hits);
}

TEST_CASE(
    "machine code runs on its architecture alone, PTX on newer ones too") {
  const Pack pack({{{75, false}, 12},
                   {{80, true}, 12},
                   {{90, false}, 12},
                   {{75, true}, 12}});
  CHECK(taken(70) == "no NVRTC");
  CHECK(taken(75) == "sm_75 12");
  CHECK(taken(80) == "sm_80 12");
  CHECK(taken(86) == "compute_75 12");
  CHECK(taken(90) == "compute_90 12");
  CHECK(taken(120) == "compute_90 12");
}

TEST_CASE("a driver is given what its version of CUDA or an older one made") {
  const Pack pack({{{90, true}, 12},
                   {{90, true}, 13},
                   {{80, false}, 12},
                   {{100, false}, 13}});
  CHECK(taken(90, 14) == "sm_90 13");
  CHECK(taken(90, 13) == "sm_90 13");
  CHECK(taken(90, 12) == "sm_90 12");
  CHECK(taken(90, 11) == "no NVRTC");
  CHECK(taken(100, 13) == "compute_100 13");
  CHECK(taken(100, 12) == "compute_80 12");
}

TEST_CASE("another source or other options are another kernel") {
  const Pack pack({{{90, true}, 13}});
  const auto found = [](const std::string& source) {
    return fuse::find_packed_image(source, 90, 13).has_value();
  };
  CHECK(found("kernel"));
  CHECK(!found("kernel "));
  const std::string key = fuse::packed_image_key({90, true}, 13, "kernel");
  for (const std::string& option : fuse::nvrtc_options(13, {90, true})) {
    CHECK(key.find(" " + option) != key.npos);
  }
}

TEST_CASE("an entry that is no image is not taken") {
  const TempDir dir;
  const Env cache("FUSEBOOK_CACHE_DIR", "off");
  const Env kernels("FUSEBOOK_KERNELS", dir / "gpu.pack");
  jit_testing::write_text(
      dir / "gpu.pack",
      fuse::pack_file({{fuse::packed_image_key({90, true}, 13, "kernel"),
                        "not an image"}}));
  chmod((dir / "gpu.pack").c_str(), 0644);
  CHECK(!fuse::find_packed_image("kernel", 90, 13));
}

TEST_CASE("what NVRTC makes of a kernel comes back from a pack as it was") {
  std::optional<fuse::Nvrtc> nvrtc;
  try {
    nvrtc = fuse::load_nvrtc();
  } catch (const NoGpu&) {
    MESSAGE("skipped: no NVRTC on this machine");
    return;
  }
  const std::string source =
      "extern \"C\" __global__ void fuse_kernel(float* p) { p[threadIdx.x] /= "
      "3; }\n";
  const TempDir dir;
  const Env cache("FUSEBOOK_CACHE_DIR", "off");
  const Env kernels("FUSEBOOK_KERNELS", dir / "gpu.pack");
  std::vector<fuse::PackedKernel> packed;
  const int newest = nvrtc->architectures.back();
  const GpuTarget exact = {newest, true};
  const GpuTarget ptx = {newest, false};
  for (const GpuTarget& target : {exact, ptx}) {
    packed.push_back({fuse::packed_image_key(target, nvrtc->major, source),
                      fuse::pack_image(fuse::compile_gpu_code(
                          *nvrtc, source, fuse::gpu_kernel_name, target))});
  }
  jit_testing::write_text(dir / "gpu.pack", fuse::pack_file(packed));
  chmod((dir / "gpu.pack").c_str(), 0644);
  for (const GpuTarget& target : {exact, ptx}) {
    const ModuleImage made =
        fuse::compile_gpu_code(*nvrtc, source, fuse::gpu_kernel_name, target);
    const auto image = fuse::find_packed_image(
        source, target.exact ? newest : newest + 10, nvrtc->major);
    REQUIRE(image.has_value());
    CHECK(image->bytes == made.bytes);
    CHECK(image->resources == made.resources);
  }
}
