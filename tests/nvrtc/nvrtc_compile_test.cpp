#include "fusebook/nvrtc/nvrtc_compile.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fusebook/cuda/gpu_error.h"
#include "fusebook/nvrtc/nvrtc_compiler.h"
#include "fusebook/prelude/gpu_layout.h"
#include "support/jit_testing.h"
#include "support/testing.h"

using namespace testing;
using fuse::DeviceTooOld;
using fuse::Error;
using fuse::GpuResources;
using fuse::GpuTarget;
using fuse::ModuleImage;
using fuse::NoGpu;
using fuse::Nvrtc;
using fuse::NvrtcApi;
using jit_testing::Env;
using jit_testing::TempDir;

namespace {

const std::string trivial = R"(
extern "C" __global__ void fuse_kernel(float* p, float a) {
  p[threadIdx.x] = p[threadIdx.x] / a;
}
)";

// This machine's NVRTC; nothing, and a message, where there is none.
const Nvrtc* installed() {
  static const std::optional<Nvrtc> found = [] {
    try {
      return std::optional<Nvrtc>(fuse::load_nvrtc());
    } catch (const NoGpu&) {
      return std::optional<Nvrtc>();
    }
  }();
  if (!found) MESSAGE("skipped: no NVRTC on this machine");
  return found ? &*found : nullptr;
}

bool is_elf(const std::string& bytes) { return bytes.starts_with("\177ELF"); }

// An NVRTC of a few lines: says what the test wants it to say.
struct Fake {
  int code = 0;           // of a compilation
  int failing_other = 0;  // of every other call
  std::string log;
  std::string code_bytes = "code";
  std::vector<std::string> options;
  int programs = 0;  // alive
  int runs = 0;
};
Fake fake;

NvrtcApi fake_api() {
  NvrtcApi api;
  using Program = NvrtcApi::Program;
  api.version = [](int* major, int* minor) {
    *major = 12;
    *minor = 4;
    return fake.failing_other;
  };
  api.get_num_supported_archs = [](int* count) {
    *count = 5;
    return 0;
  };
  api.get_supported_archs = [](int* all) {
    const int unsorted[] = {90, 52, 75, 61, 80};
    std::copy(std::begin(unsorted), std::end(unsorted), all);
    return 0;
  };
  api.create_program = [](Program* program, const char*, const char*, int,
                          const char* const*, const char* const*) {
    ++fake.programs;
    *program = reinterpret_cast<Program>(&fake);
    return 0;
  };
  api.destroy_program = [](Program*) {
    --fake.programs;
    return 0;
  };
  api.compile_program = [](Program, int count, const char* const* options) {
    ++fake.runs;
    fake.options.assign(options, options + count);
    return fake.code;
  };
  const auto size_of_code = [](Program, std::size_t* size) {
    *size = fake.code_bytes.size();
    return 0;
  };
  const auto copy_code = [](Program, char* to) {
    std::copy(fake.code_bytes.begin(), fake.code_bytes.end(), to);
    return 0;
  };
  api.get_cubin_size = size_of_code;
  api.get_cubin = copy_code;
  api.get_ptx_size = size_of_code;
  api.get_ptx = [](Program, char* to) {
    const std::string_view text = "ptx!";
    std::copy(text.begin(), text.end(), to);
    return 0;
  };
  api.get_log_size = [](Program, std::size_t* size) {
    *size = fake.log.size() + 1;
    return 0;
  };
  api.get_log = [](Program, char* to) {
    std::memcpy(to, fake.log.c_str(), fake.log.size() + 1);
    return 0;
  };
  api.get_error_string = [](int code) {
    return code == 7 ? "NVRTC_ERROR_BUILTIN_OPERATION_FAILURE"
                     : "NVRTC_ERROR_COMPILATION";
  };
  return api;
}

const NvrtcApi& shared_fake_api() {
  static const NvrtcApi api = fake_api();
  return api;
}

Nvrtc fake_nvrtc() {
  fake = {};
  return fuse::describe_nvrtc(shared_fake_api(), "/somewhere/libnvrtc.so.12");
}

}  // namespace

TEST_CASE("targets: machine code for known devices, PTX for newer ones") {
  const Nvrtc nvrtc = fake_nvrtc();
  // Those that cannot take the kernels' parameters are left out.
  CHECK(nvrtc.architectures == std::vector<int>{75, 80, 90});
  CHECK(fuse::choose_target(nvrtc, 80).text() == "sm_80");
  CHECK(fuse::choose_target(nvrtc, 90).text() == "sm_90");
  CHECK(fuse::choose_target(nvrtc, 121).text() == "compute_90");
  CHECK(fuse::choose_target(nvrtc, 86).text() == "compute_80");
  CHECK(
      message_of<DeviceTooOld>([&] { fuse::choose_target(nvrtc, 70); }) ==
      "the device has compute capability 7.0, but NVRTC 12.4 compiles for "
      "7.5 and newer; set FUSEBOOK_NVRTC to the NVRTC of an older CUDA, which "
      "may still support it");
  CHECK(message_of<DeviceTooOld>([&] { fuse::choose_target(nvrtc, 61); }) ==
        "the device has compute capability 6.1, but generated kernels need "
        "7.0");
}

TEST_CASE("every compilation asks for exact arithmetic") {
  const Nvrtc nvrtc = fake_nvrtc();
  fuse::compile_gpu_code(nvrtc, trivial, "fuse_kernel", {80, true});
  CHECK(fake.options ==
        std::vector<std::string>{"--gpu-architecture=sm_80", "--std=c++20",
                                 "--fmad=false", "--prec-div=true",
                                 "--prec-sqrt=true", "--ftz=false",
                                 "--ptxas-options=-v"});
  Nvrtc old = nvrtc;
  old.major = 11;
  CHECK(fuse::nvrtc_options(old.major, {80, false})[1] == "--std=c++17");
  CHECK(fake.programs == 0);
}

TEST_CASE("PTX is what devices newer than NVRTC get") {
  const Nvrtc nvrtc = fake_nvrtc();
  CHECK(fuse::compile_gpu_code(nvrtc, trivial, "k", {90, true}).bytes ==
        "code");
  CHECK(fuse::compile_gpu_code(nvrtc, trivial, "k", {90, false}).bytes ==
        "ptx!");
  CHECK(fake.options[0] == "--gpu-architecture=compute_90");
}

TEST_CASE("missing builtins are no fault of the source") {
  const Nvrtc nvrtc = fake_nvrtc();
  fake.code = 7;
  fake.log = "nvrtc: error: failed to open libnvrtc-builtins.so.12.4.";
  const std::string message = message_of<NoGpu>(
      [&] { fuse::compile_gpu_code(nvrtc, trivial, "k", {90, true}); });
  CHECK(contains(message, "cannot compile for a GPU"));
  CHECK(contains(message, "code 7 (NVRTC_ERROR_BUILTIN_OPERATION_FAILURE)"));
  CHECK(contains(message, "libnvrtc-builtins, is missing"));
  CHECK(contains(message, "/somewhere/libnvrtc.so.12"));
  CHECK(contains(message, fake.log));
  CHECK(fake.programs == 0);
}

TEST_CASE("a failed compilation shows its words and the numbered source") {
  const Nvrtc nvrtc = fake_nvrtc();
  fake.code = 6;
  fake.log = "k.cu(2): error: something\n";
  const std::string message = message_of<Error>(
      [&] { fuse::compile_gpu_code(nvrtc, "one\ntwo\n", "k", {90, true}); });
  CHECK(message ==
        "compiling 'k' for sm_90 with NVRTC 12.4 failed: nvrtcCompileProgram "
        "returned code 6 (NVRTC_ERROR_COMPILATION)\n"
        "  its output:\n"
        "k.cu(2): error: something\n"
        "  the source:\n"
        "   1 | one\n"
        "   2 | two\n");
  CHECK(fake.programs == 0);
  fake.code = 0;
  fake.code_bytes = "";
  CHECK(contains(message_of<Error>([&] {
                   fuse::compile_gpu_code(nvrtc, "one\n", "k", {90, true});
                 }),
                 "wrote no code"));
}

TEST_CASE("an NVRTC that cannot say what it is serves nobody") {
  fake = {};
  fake.failing_other = 6;
  CHECK(contains(message_of<NoGpu>([] {
                   fuse::describe_nvrtc(shared_fake_api(), "libnvrtc.so.12");
                 }),
                 "nvrtcVersion of 'libnvrtc.so.12' failed with code 6"));
}

TEST_CASE("numbered source") {
  CHECK(fuse::numbered_source("") == "");
  CHECK(fuse::numbered_source("a\n\nb") == "   1 | a\n   2 | \n   3 | b\n");
  std::string many;
  for (int i = 0; i < 10000; ++i) many += "x\n";
  CHECK(contains(fuse::numbered_source(many), "\n10000 | x\n"));
}

TEST_CASE("figures are read from the kernel's own part of the log") {
  const std::string log =
      "ptxas info    : 0 bytes gmem\n"
      "ptxas info    : Compiling entry function 'other' for 'sm_90'\n"
      "ptxas info    : Function properties for other\n"
      "ptxas         .     0 bytes stack frame, 1 bytes spill stores, 2 bytes "
      "spill loads\n"
      "ptxas info    : Used 20 registers, used 0 barriers\n"
      "ptxas info    : Compiling entry function 'fuse_kernel' for 'sm_90'\n"
      "ptxas info    : Function properties for fuse_kernel\n"
      "ptxas         .     16 bytes stack frame, 24 bytes spill stores, 32 "
      "bytes spill loads\n"
      "ptxas info    : Used 64 registers, used 1 barriers, 4 bytes smem\n"
      "ptxas info    : Compiling entry function 'third' for 'sm_90'\n"
      "ptxas info    : Used 99 registers, used 0 barriers\n";
  CHECK(fuse::read_ptxas_log(log, "fuse_kernel") ==
        GpuResources{64, 24, 32, 4});
  CHECK(fuse::read_ptxas_log(log, "other") == GpuResources{20, 1, 2, 0});
  CHECK(fuse::read_ptxas_log(log, "third") == GpuResources{99, -1, -1, 0});
  CHECK(fuse::read_ptxas_log(log, "none") == GpuResources{});
  CHECK(fuse::read_ptxas_log("", "other") == GpuResources{});
}

TEST_CASE("a library that is named is the only one tried") {
  const Env named("FUSEBOOK_NVRTC", "/no/such/libnvrtc.so");
  CHECK(fuse::nvrtc_candidates(13) ==
        std::vector<std::string>{"/no/such/libnvrtc.so"});
  const std::string message = message_of<NoGpu>([] { fuse::load_nvrtc(); });
  CHECK(contains(message, "FUSEBOOK_NVRTC is '/no/such/libnvrtc.so'"));
  const Env other("FUSEBOOK_NVRTC", "libm.so.6");
  CHECK(contains(message_of<NoGpu>([] { fuse::load_nvrtc(); }),
                 "lacks the function 'nvrtcVersion'"));
}

TEST_CASE("the places where NVRTC is looked for") {
  const Env none("FUSEBOOK_NVRTC", nullptr);
  const Env path("CUDA_PATH", nullptr);
  const Env own("FUSEBOOK_CUDA_HOME", "/own");
  const Env home("CUDA_HOME", "/home/cuda");
  const auto names = fuse::nvrtc_candidates(13);
  const auto at = [&](const std::string& name) {
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (names[i] == name) return int(i);
    }
    return -1;
  };
  CHECK(at("libnvrtc.so.13") == 0);
  const auto configured = fuse::nvrtc_candidates(13, "/one;/a b:c;");
  CHECK(configured[1] == "/one/libnvrtc.so.13");
  CHECK(configured[2] == "/a b:c/libnvrtc.so.13");
  CHECK(configured[3] == "/own/lib64/libnvrtc.so.13");
  CHECK(at("/own/lib64/libnvrtc.so.13") > 0);
  CHECK(at("/home/cuda/lib/libnvrtc.so.13") > at("/own/lib/libnvrtc.so.13"));
  CHECK(at("/usr/local/cuda/lib64/libnvrtc.so.13") > 0);
  CHECK(at("libnvrtc.so.12") > at("/usr/local/cuda/lib/libnvrtc.so.13"));
  // A driver for CUDA 12 takes no code from NVRTC 13.
  CHECK(fuse::nvrtc_candidates(12)[0] == "libnvrtc.so.12");
  CHECK(fuse::nvrtc_candidates(14) == names);
  CHECK(fuse::nvrtc_candidates(11).empty());
}

TEST_CASE("a driver too old for the NVRTC that is there") {
  const Env none("FUSEBOOK_NVRTC", nullptr);
  const std::string message = message_of<NoGpu>([] { fuse::load_nvrtc(11); });
  CHECK(contains(message, "whose code this driver accepts (CUDA 11"));
}

TEST_CASE("the disk cache spares the second compilation") {
  const TempDir folder;
  const Env cache("FUSEBOOK_CACHE_DIR", folder.path());
  fake = {};
  fake.log =
      "Compiling entry function 'fuse_kernel' for 'sm_80'\n"
      "0 bytes stack frame, 4 bytes spill stores, 8 bytes spill loads\n"
      "Used 33 registers\n";
  fake.code_bytes = std::string("a\0b\nc", 5);
  const auto open = [] {
    return fuse::describe_nvrtc(shared_fake_api(), "libnvrtc.so.12");
  };
  const auto before = fuse::nvrtc_counters();
  const auto compile = [&](const std::string& source, int capability) {
    return fuse::make_nvrtc_compiler(open)->compile(source, capability);
  };
  const ModuleImage first = compile("source", 80);
  CHECK(first.bytes == fake.code_bytes);
  CHECK(first.resources == GpuResources{33, 4, 8, 0});
  CHECK(fake.runs == 1);
  const ModuleImage second = compile("source", 80);
  CHECK(fake.runs == 1);
  CHECK(second.bytes == first.bytes);
  CHECK(second.resources == first.resources);
  compile("source", 90);
  CHECK(fake.runs == 2);
  compile("source", 120);  // PTX for 9.0 is no code for 9.0
  CHECK(fake.runs == 3);
  compile("another source", 80);
  CHECK(fake.runs == 4);
  CHECK(fuse::nvrtc_counters().compiler_runs - before.compiler_runs == 4);
  CHECK(fuse::nvrtc_counters().disk_hits - before.disk_hits == 1);
  {
    const Env off("FUSEBOOK_CACHE_DIR", "off");
    compile("source", 80);
    CHECK(fake.runs == 5);
  }
  // What failed is not kept.
  fake.code = 6;
  CHECK_THROWS_AS(compile("bad", 80), Error);
  CHECK_THROWS_AS(compile("bad", 80), Error);
  CHECK(fake.runs == 7);
}

TEST_CASE("NVRTC is opened for the first kernel, and again while that fails") {
  const Env off("FUSEBOOK_CACHE_DIR", "off");
  int opened = 0;
  bool there = false;
  const auto compiler = fuse::make_nvrtc_compiler([&] {
    ++opened;
    if (!there) throw NoGpu("none");
    return fake_nvrtc();
  });
  CHECK(opened == 0);
  CHECK_THROWS_AS(compiler->compile("source", 80), NoGpu);
  there = true;
  compiler->compile("source", 80);
  compiler->compile("source", 80);
  CHECK(opened == 2);
  CHECK_THROWS_AS(compiler->compile("source", 60), DeviceTooOld);
  CHECK_THROWS_AS(compiler->check(60), DeviceTooOld);
  CHECK_NOTHROW(compiler->check(80));
}

TEST_CASE("NVRTC compiles for every architecture that it names") {
  const Nvrtc* const nvrtc = installed();
  if (nvrtc == nullptr) return;
  CHECK(nvrtc->architectures.size() > 5);
  for (const int architecture : nvrtc->architectures) {
    const GpuTarget target = fuse::choose_target(*nvrtc, architecture);
    CHECK(target.exact);
    const ModuleImage image =
        fuse::compile_gpu_code(*nvrtc, trivial, fuse::gpu_kernel_name, target);
    CHECK(is_elf(image.bytes));
    CHECK(image.resources.registers > 0);
    CHECK(image.resources.registers < 64);
    CHECK(image.resources.spill_stores == 0);
    CHECK(image.resources.spill_loads == 0);
    CHECK(image.resources.shared_bytes == 0);
  }
  const ModuleImage newer = fuse::compile_gpu_code(
      *nvrtc, trivial, fuse::gpu_kernel_name, fuse::choose_target(*nvrtc, 999));
  CHECK(contains(newer.bytes, ".visible .entry fuse_kernel"));
  CHECK(contains(newer.bytes, "div.rn.f32"));
  CHECK(newer.bytes.back() == '\0');
}

TEST_CASE("NVRTC's own words on a source that is wrong") {
  const Nvrtc* const nvrtc = installed();
  if (nvrtc == nullptr) return;
  const GpuTarget target = {nvrtc->architectures.back(), true};
  const std::string message = message_of<Error>([&] {
    fuse::compile_gpu_code(*nvrtc, "int a;\nint b = unknown_name;\n",
                           fuse::gpu_kernel_name, target);
  });
  CHECK(contains(message, "fuse_kernel.cu(2): error"));
  CHECK(contains(message, "code 6 (NVRTC_ERROR_COMPILATION)"));
  CHECK(contains(message, target.text()));
  CHECK(contains(message, "   2 | int b = unknown_name;\n"));
}

TEST_CASE("shared memory and spills of real code are seen") {
  const Nvrtc* const nvrtc = installed();
  if (nvrtc == nullptr) return;
  const std::string source = R"(
extern "C" __global__ void __maxnreg__(24) fuse_kernel(double* p) {
  __shared__ double shared[64];
  double x[40];
  #pragma unroll
  for (int i = 0; i < 40; ++i) x[i] = p[i * 1024 + threadIdx.x];
  shared[threadIdx.x % 64] = x[3];
  __syncthreads();
  #pragma unroll
  for (int i = 0; i < 40; ++i) p[(39 - i) * 1024 + threadIdx.x] =
      x[i] * x[(i * 7) % 40] + shared[(threadIdx.x + i) % 64];
}
)";
  const ModuleImage image =
      fuse::compile_gpu_code(*nvrtc, source, fuse::gpu_kernel_name,
                             {nvrtc->architectures.back(), true});
  CHECK(image.resources.shared_bytes == 512);
  CHECK(image.resources.spill_stores > 0);
  CHECK(image.resources.spill_loads > 0);
}
