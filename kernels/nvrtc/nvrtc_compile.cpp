#include "fusebook/nvrtc/nvrtc_compile.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <string_view>

#include "fusebook/cuda/gpu_error.h"
#include "fusebook/prelude/gpu_layout.h"

namespace fuse {
namespace {

std::string capability_text(int capability) {
  return fmt::format("{}.{}", capability / 10, capability % 10);
}

std::string version_text(const Nvrtc& nvrtc) {
  return fmt::format("NVRTC {}.{}", nvrtc.major, nvrtc.minor);
}

// The compilation of one source with NVRTC.
class Compilation {
 public:
  Compilation(const Nvrtc& nvrtc, const std::string& source,
              const std::string& name, const GpuTarget& target)
      : nvrtc_(nvrtc), source_(source), name_(name), target_(target) {}
  ~Compilation() {
    if (program_ != nullptr) nvrtc_.api->destroy_program(&program_);
  }
  Compilation(const Compilation&) = delete;
  Compilation& operator=(const Compilation&) = delete;

  void run() {
    const NvrtcApi& api = *nvrtc_.api;
    check(api.create_program(&program_, source_.c_str(),
                             (name_ + ".cu").c_str(), 0, nullptr, nullptr),
          "nvrtcCreateProgram");
    const auto options = nvrtc_options(nvrtc_.major, target_);
    std::vector<const char*> words;
    for (const std::string& option : options) words.push_back(option.c_str());
    check(api.compile_program(program_, int(words.size()), words.data()),
          "nvrtcCompileProgram");
  }

  std::string code() {
    const NvrtcApi& api = *nvrtc_.api;
    if (target_.exact) {
      return read(api.get_cubin_size, api.get_cubin, "nvrtcGetCUBIN");
    }
    return read(api.get_ptx_size, api.get_ptx, "nvrtcGetPTX");
  }

  std::string log() const {
    const NvrtcApi& api = *nvrtc_.api;
    std::size_t size = 0;
    if (program_ == nullptr || api.get_log_size(program_, &size) != 0)
      return {};
    std::string text(size, '\0');
    if (api.get_log(program_, text.data()) != 0) return {};
    return text.substr(0, text.find('\0'));
  }

 private:
  using AskSize = int (*)(NvrtcApi::Program, std::size_t*);
  using Ask = int (*)(NvrtcApi::Program, char*);

  std::string read(AskSize ask_size, Ask ask, const char* call) const {
    std::size_t size = 0;
    check(ask_size(program_, &size), call);
    std::string bytes(size, '\0');
    check(ask(program_, bytes.data()), call);
    if (bytes.empty()) fail("wrote no code", "");
    return bytes;
  }
  void check(int code, const char* call) const {
    if (code == NvrtcApi::success) return;
    const std::string what =
        fmt::format("failed: {} returned code {} ({})", call, code,
                    nvrtc_.api->get_error_string(code));
    if (code == NvrtcApi::builtins_failed) {
      throw NoGpu(fmt::format(
          "cannot compile for a GPU: {} {}. Its second library, "
          "libnvrtc-builtins, is missing or has another version: it belongs "
          "beside '{}'; install the complete CUDA Toolkit, or set "
          "FUSEBOOK_NVRTC to another library\n{}",
          version_text(nvrtc_), what, nvrtc_.library, log()));
    }
    fail(what, log());
  }
  [[noreturn]] void fail(const std::string& what,
                         const std::string& words) const {
    throw Error(fmt::format(
        "compiling '{}' for {} with {} {}\n  its output:\n{}  the source:\n{}",
        name_, target_.text(), version_text(nvrtc_), what, words,
        numbered_source(source_)));
  }

  const Nvrtc& nvrtc_;
  const std::string& source_;
  const std::string& name_;
  const GpuTarget& target_;
  NvrtcApi::Program program_ = nullptr;
};

// The number before a word of the log.
int number_before(std::string_view text, std::string_view word) {
  const std::size_t at = text.find(word);
  if (at == text.npos) return -1;
  std::size_t begin = at;
  while (begin > 0 && text[begin - 1] >= '0' && text[begin - 1] <= '9') --begin;
  int value = -1;
  std::from_chars(text.data() + begin, text.data() + at, value);
  return value;
}

[[noreturn]] void throw_too_old(const Nvrtc& nvrtc, int capability) {
  std::string message =
      "the device has compute capability " + capability_text(capability);
  if (capability < oldest_gpu_architecture) {
    throw DeviceTooOld(message + ", but generated kernels need " +
                       capability_text(oldest_gpu_architecture));
  }
  message +=
      ", but " + version_text(nvrtc) + " compiles for " +
      (nvrtc.architectures.empty()
           ? "no GPU that could run them"
           : capability_text(nvrtc.architectures.front()) + " and newer");
  throw DeviceTooOld(message +
                     "; set FUSEBOOK_NVRTC to the NVRTC of an older CUDA, "
                     "which may still support it");
}

}  // namespace

std::string GpuTarget::text() const {
  return fmt::format("{}{}", exact ? "sm_" : "compute_", architecture);
}

GpuTarget choose_target(const Nvrtc& nvrtc, int capability) {
  const auto& known = nvrtc.architectures;
  const auto after = std::upper_bound(known.begin(), known.end(), capability);
  if (after != known.begin()) {
    return {*(after - 1), *(after - 1) == capability};
  }
  throw_too_old(nvrtc, capability);
}

std::vector<std::string> nvrtc_options(int nvrtc_major,
                                       const GpuTarget& target) {
  return {"--gpu-architecture=" + target.text(),
          nvrtc_major >= 12 ? "--std=c++20" : "--std=c++17",
          "--fmad=false",
          "--prec-div=true",
          "--prec-sqrt=true",
          "--ftz=false",
          "--ptxas-options=-v"};
}

ModuleImage compile_gpu_code(const Nvrtc& nvrtc, const std::string& source,
                             const std::string& name, const GpuTarget& target) {
  Compilation compilation(nvrtc, source, name, target);
  compilation.run();
  return {compilation.code(), read_ptxas_log(compilation.log(), name)};
}

// ptxas info    : Compiling entry function 'fuse_kernel' for 'sm_90'
// ptxas info    : Function properties for fuse_kernel
// ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes ...
// ptxas info    : Used 14 registers, used 0 barriers, 4 bytes smem
GpuResources read_ptxas_log(const std::string& log, const std::string& name) {
  GpuResources found;
  const std::string entry = "Compiling entry function '";
  const std::size_t at = log.find(entry + name + "'");
  if (at == log.npos) return found;
  const std::size_t end = log.find(entry, at + entry.size());
  const std::string_view own = std::string_view(log).substr(at, end - at);
  found.registers = number_before(own, " registers");
  found.spill_stores = number_before(own, " bytes spill stores");
  found.spill_loads = number_before(own, " bytes spill loads");
  if (found.registers >= 0) {
    found.shared_bytes = std::max(0, number_before(own, " bytes smem"));
  }
  return found;
}

std::string numbered_source(const std::string& source) {
  std::string text;
  std::size_t begin = 0;
  for (int number = 1; begin < source.size(); ++number) {
    const std::size_t end = std::min(source.find('\n', begin), source.size());
    const std::string digits = std::to_string(number);
    text += std::string(digits.size() < 4 ? 4 - digits.size() : 0, ' ') +
            digits + " | " + source.substr(begin, end - begin) + "\n";
    begin = end + 1;
  }
  return text;
}

}  // namespace fuse
