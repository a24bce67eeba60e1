// Compiles CUDA text for GPUs that need not be there, and reads what the
// compiler says of the machine code:
//
//   gpu_code_check [--every N] [--others END] [--ptx] [--no-spills]
//                  [--registers N] [--only ARCHITECTURE] [--keep FILE]
//                  [--report FILE] PATH...
//
// A path is a .cu file, or a folder whose .cu files are taken in the order of
// their names. The first N (by default all) are compiled for every architecture
// that NVRTC knows, the others for one of its ends, "oldest" or "newest" (the
// default).
// --ptx: no further than PTX, for the newest, which shows that the text is right.
// --no-spills: no register may be spilled and, looked at for the newest, no array of
// a thread be in memory; --registers: no kernel may use more.
// --only: for this architecture alone; --keep: what the last compilation made, PTX
// or a cubin. --report: a line for each compilation with its architecture,
// registers and bytes of spills, stored and loaded, of a thread, and bytes of shared
// memory of a block. NVRTC is the one that a program finds (FUSEBOOK_NVRTC).
//
//   gpu_code_check --host-options
//
// says with which options the host's compiler compiles kernels.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "fusebook/jit/host_compiler.h"
#include "fusebook/nvrtc/nvrtc_compile.h"
#include "fusebook/prelude/gpu_layout.h"
#include "kernel_of.h"

namespace {

namespace fs = std::filesystem;
using fuse::GpuResources;

struct Limits {
  std::vector<fs::path> paths;
  std::size_t every = std::numeric_limits<std::size_t>::max();
  std::string others = "newest";
  bool ptx = false;
  bool no_spills = false;
  int registers = std::numeric_limits<int>::max();
  int only = 0;  // 0: every architecture that the other options choose
  fs::path kept, report;
};

struct Totals {
  int compilations = 0;
  int most_registers = 0;
  int spilling = 0;
  std::string last;    // what the last one made
  std::string report;  // of all of them
};

std::vector<fs::path> sources_in(const std::vector<fs::path>& paths) {
  std::vector<fs::path> files;
  for (const fs::path& path : paths) {
    if (!fs::is_directory(path)) {
      files.push_back(path);
      continue;
    }
    const auto first = files.size();
    for (const auto& entry : fs::directory_iterator(path)) {
      if (entry.path().extension() == ".cu") files.push_back(entry.path());
    }
    std::sort(files.begin() + std::ptrdiff_t(first), files.end());
    if (files.size() == first) {
      throw std::runtime_error(path.string() + " holds no .cu file");
    }
  }
  return files;
}

std::string contents(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read " + path.string());
  return {std::istreambuf_iterator<char>(file), {}};
}

void write(const fs::path& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text << std::flush;
  if (!file) throw std::runtime_error("cannot write " + path.string());
}

std::string report_line(int architecture, const GpuResources& used) {
  std::string line = std::to_string(architecture);
  for (const int figure : {used.registers, used.spill_stores, used.spill_loads,
                           used.shared_bytes}) {
    line += ' ' + std::to_string(figure);
  }
  return line + '\n';
}

void check_resources(const GpuResources& used, const Limits& limits) {
  if (used.registers < 0 || used.spill_stores < 0 || used.spill_loads < 0) {
    throw std::runtime_error("the compiler's log has no figures");
  }
  if (limits.no_spills && used.spill_stores + used.spill_loads > 0) {
    throw std::runtime_error(
        "spills registers: " + std::to_string(used.spill_stores) +
        " bytes of stores, " + std::to_string(used.spill_loads) + " of loads");
  }
  if (used.registers > limits.registers) {
    throw std::runtime_error("uses " + std::to_string(used.registers) +
                             " registers, and may use " +
                             std::to_string(limits.registers));
  }
}

// What the library compiles has its kernels renamed; a file of one's own has not.
std::string name_in(const std::string& text) {
  const bool renamed = text.find(fuse::gpu_kernel_name) != text.npos;
  return renamed ? fuse::gpu_kernel_name : kernel_of(text);
}

// An array that is indexed by what the compiler does not know is in memory, as a
// spilled register is.
void check_arrays(const fuse::Nvrtc& nvrtc, const std::string& text) {
  const fuse::ModuleImage ptx = fuse::compile_gpu_code(
      nvrtc, text, name_in(text), {nvrtc.architectures.back(), false});
  if (ptx.bytes.find(".local ") == std::string::npos) return;
  throw std::runtime_error("keeps an array of each thread in memory");
}

// One source for one architecture; false when it is not as it must be.
bool compile(const fuse::Nvrtc& nvrtc, const fs::path& file, int architecture,
             const Limits& limits, Totals& totals) {
  try {
    const std::string text = contents(file);
    fuse::ModuleImage image = fuse::compile_gpu_code(
        nvrtc, text, name_in(text), {architecture, !limits.ptx});
    const GpuResources& used = image.resources;
    ++totals.compilations;
    totals.last = std::move(image.bytes);
    if (limits.ptx) totals.last.pop_back();  // ends with a zero
    totals.report += report_line(architecture, used);
    if (limits.ptx) return true;
    totals.most_registers = std::max(totals.most_registers, used.registers);
    totals.spilling += used.spill_stores + used.spill_loads > 0 ? 1 : 0;
    check_resources(used, limits);
    if (limits.no_spills && architecture == nvrtc.architectures.back()) {
      check_arrays(nvrtc, text);
    }
    return true;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s, sm_%d: %s\n", file.c_str(), architecture,
                 error.what());
    return false;
  }
}

std::vector<int> architectures_for(std::size_t source, const fuse::Nvrtc& nvrtc,
                                   const Limits& limits) {
  const std::vector<int>& all = nvrtc.architectures;
  if (limits.only != 0) return {limits.only};
  if (limits.ptx) return {all.back()};
  if (source < limits.every) return all;
  return {limits.others == "oldest" ? all.front() : all.back()};
}

bool compile_all(const fuse::Nvrtc& nvrtc, const std::vector<fs::path>& files,
                 const Limits& limits, Totals& totals) {
  for (std::size_t i = 0; i < files.size(); ++i) {
    for (const int architecture : architectures_for(i, nvrtc, limits)) {
      // One source that is wrong is wrong everywhere, and its text is long.
      if (!compile(nvrtc, files[i], architecture, limits, totals)) return false;
    }
  }
  return true;
}

bool check(const Limits& limits) {
  const std::vector<fs::path> files = sources_in(limits.paths);
  const fuse::Nvrtc nvrtc = fuse::load_nvrtc();
  if (nvrtc.architectures.empty()) {
    throw std::runtime_error(nvrtc.library + " knows no architecture");
  }
  Totals totals;
  const auto begin = std::chrono::steady_clock::now();
  const bool good = compile_all(nvrtc, files, limits, totals);
  const std::chrono::duration<double> seconds =
      std::chrono::steady_clock::now() - begin;
  if (good && !limits.kept.empty()) write(limits.kept, totals.last);
  if (good && !limits.report.empty()) write(limits.report, totals.report);
  const std::size_t everywhere = limits.ptx ? 0 : limits.every;
  std::printf(
      "NVRTC %d.%d, sm_%d to sm_%d: %zu sources, %zu of them for all %zu "
      "architectures; %d compilations in %.1f s",
      nvrtc.major, nvrtc.minor, nvrtc.architectures.front(),
      nvrtc.architectures.back(), files.size(),
      std::min(everywhere, files.size()), nvrtc.architectures.size(),
      totals.compilations, seconds.count());
  if (!limits.ptx) {
    std::printf("; at most %d registers, %d with spills", totals.most_registers,
                totals.spilling);
  }
  std::printf("\n");
  return good;
}

int print_host_options() {
  for (const std::string& option : fuse::compile_flags()) {
    std::printf("%s\n", option.c_str());
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Compiles CUDA text for GPUs that need not be there.");
  Limits limits;
  CLI::Option* const paths =
      app.add_option("PATH", limits.paths, "a .cu file, or a folder of them")
          ->check(CLI::ExistingPath);
  app.add_option("--every", limits.every, "sources for every architecture");
  app.add_option("--others", limits.others,
                 "the architecture for all other sources")
      ->check(CLI::IsMember({"oldest", "newest"}));
  app.add_flag("--ptx", limits.ptx, "no further than PTX");
  app.add_flag("--no-spills", limits.no_spills,
               "nothing of a thread in memory");
  app.add_option("--registers", limits.registers, "no kernel may use more");
  app.add_option("--only", limits.only, "for this architecture alone");
  app.add_option("--keep", limits.kept, "keeps what was made last there");
  app.add_option("--report", limits.report, "writes the figures there");
  bool host_options = false;
  app.add_flag("--host-options", host_options, "the host compiler's, instead");
  try {
    app.parse(argc, argv);
    if (host_options) return print_host_options();
    if (paths->empty()) throw CLI::RequiredError("PATH");
    return check(limits) ? 0 : 1;
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "gpu_code_check: %s\n", error.what());
    return 2;
  }
}
