// fusebook-pack: compiles the kernels of a program ahead; see options.cpp.
#include <fmt/core.h>
#include <sys/stat.h>

#include <cstdio>
#include <exception>
#include <string>

#include "compile.h"
#include "fusebook/jit/pack_file.h"
#include "fusebook/support/error.h"
#include "fusebook/support/join.h"
#include "fusebook/support/output_file.h"
#include "fusebook/support/warning.h"
#include "options.h"
#include "sources.h"

namespace {

using fuse::Error;
using fuse::PackFile;

// "kernels.pack: 6 kernels: cpu x86-64, cpu x86-64-v3"
void describe(const std::string& path, const PackFile& file) {
  std::printf("%s: %s\n", path.c_str(),
              fmt::format("{} kernels: {}", file.size(),
                          fuse::join(file.targets(), "; "))
                  .c_str());
}

void list(const std::string& path) {
  std::string problem;
  const PackFile file = PackFile::read(path, &problem);
  if (!problem.empty()) throw Error("'" + path + "' " + problem);
  describe(path, file);
}

void write(const std::string& path, const std::string& bytes) {
  umask(umask(077) | 022);  // nobody else may write what programs load
  fuse::OutputFile file("--output", path);
  file.write(bytes);
  file.commit();
}

void pack(const Options& options) {
  // Says what is wrong with the path before anything runs.
  static_cast<void>(fuse::OutputFile("--output", options.output));
  const Sources sources = options.sources.empty()
                              ? sources_of_program(options.command)
                              : sources_in(options.sources);
  if (sources.cpu.empty() && sources.gpu.empty()) {
    throw Error(options.sources.empty()
                    ? "'" + options.command[0] +
                          "' compiled no kernel; nothing was packed"
                    : "no kernel's source is in '" + options.sources + "'");
  }
  write(options.output, fuse::pack_file(compile_all(sources, options)));
  std::string problem;
  const PackFile file = PackFile::read(options.output, &problem);
  if (problem.empty()) return describe(options.output, file);
  fuse::warn("'" + options.output +
             "' is complete, but would not be loaded where it lies: it " +
             problem);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const auto options = read_options(argc, argv);
    if (!options) return 0;
    options->listed.empty() ? pack(*options) : list(options->listed);
    return 0;
  } catch (const fuse::UsageError& error) {
    std::fprintf(stderr, "fusebook-pack: %s\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "fusebook-pack: %s\n", error.what());
    return 1;
  }
}
