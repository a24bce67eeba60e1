#include "options.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <string_view>

#include "fusebook/jit/cpu_levels.h"
#include "fusebook/support/error.h"
#include "fusebook/support/join.h"
#include "fusebook/support/version.h"

namespace {

using fuse::UsageError;

constexpr const char* about =
    "Compiles the kernels of a program ahead, for machines without a "
    "compiler.\n"
    "\n"
    "It runs the program, which says what kernels it needs, and compiles each\n"
    "for these CPUs and GPUs into one file. There, FUSEBOOK_KERNELS names the\n"
    "file, or the program calls fuse::load_kernels. For --gpu, run it on a "
    "GPU,\n"
    "or the simulated one: a run on the CPU needs fewer kernels.\n";
constexpr const char* usage =
    "fusebook-pack --output FILE [--cpu LEVELS] [--gpu ARCHITECTURES] -- "
    "PROGRAM [ARGUMENT...]";

// Levels that every CPU of this architecture runs, or that gain much.
std::string default_levels() {
  std::vector<std::string> levels = fuse::cpu_levels();
  std::erase(levels, "x86-64-v2");
  return fuse::join(levels, ",");
}

std::vector<std::string> items_of(const std::string& list) {
  std::vector<std::string> items;
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    if (end > begin) items.push_back(list.substr(begin, end - begin));
    begin = end + 1;
  }
  return items;
}

std::vector<std::string> levels_of(const std::string& list) {
  if (list == "none") return {};
  std::vector<std::string> levels = items_of(list);
  const auto& known = fuse::cpu_levels();
  for (const std::string& level : levels) {
    if (std::find(known.begin(), known.end(), level) == known.end()) {
      throw UsageError("--cpu: unknown level '" + level + "'; use some of " +
                       fuse::join(known) + ", or none");
    }
  }
  return levels;
}

std::optional<fuse::GpuTarget> target_of(std::string_view name) {
  for (const bool exact : {true, false}) {
    const std::string_view start = exact ? "sm_" : "compute_";
    if (!name.starts_with(start)) continue;
    const std::string_view digits = name.substr(start.size());
    fuse::GpuTarget target{0, exact};
    const char* const end = digits.data() + digits.size();
    const auto [rest, error] =
        std::from_chars(digits.data(), end, target.architecture);
    if (error == std::errc() && rest == end) return target;
  }
  return std::nullopt;
}

void read_gpus(const std::string& list, Options* options) {
  for (const std::string& name : items_of(list)) {
    const auto target = target_of(name);
    if (target) {
      options->gpus.push_back(*target);
    } else if (name == "cuda-sim") {
      options->simulator = true;
    } else {
      throw UsageError("--gpu: unknown architecture '" + name +
                       "'; use names such as sm_90 for machine code, "
                       "compute_90 for PTX, or cuda-sim");
    }
  }
}

void check(const Options& options) {
  if (!options.listed.empty()) return;
  if (options.output.empty()) {
    throw UsageError(std::string("--output is missing: ") + usage);
  }
  if (options.command.empty() == options.sources.empty()) {
    throw UsageError(
        std::string("name a program to run, or a folder with --sources: ") +
        usage);
  }
  if (options.levels.empty() && options.gpus.empty()) {
    throw UsageError("neither --cpu nor --gpu names anything to compile for");
  }
}

}  // namespace

std::optional<Options> read_options(int argc, char** argv) {
  Options options;
  std::string levels = default_levels();
  std::string gpus;
  bool version = false;
  CLI::App app(std::string(about) + "\n  " + usage + "\n", "fusebook-pack");
  app.add_option("-o,--output", options.output, "the file to write");
  app.add_option("--cpu", levels,
                 "levels of the CPU's instruction set, or none")
      ->capture_default_str();
  app.add_option("--gpu", gpus,
                 "architectures: sm_90 (machine code), compute_90 (PTX), "
                 "cuda-sim");
  app.add_option("--sources", options.sources,
                 "a folder that FUSEBOOK_KEEP_SOURCE named, instead of a "
                 "program to run");
  app.add_option("--list", options.listed, "says what a file holds");
  app.add_flag("--version", version, "says which version this is");
  const auto dashes = std::find(argv, argv + argc, std::string_view("--"));
  if (dashes != argv + argc) options.command.assign(dashes + 1, argv + argc);
  try {
    app.parse(int(dashes - argv), argv);
  } catch (const CLI::CallForHelp&) {
    std::fputs(app.help().c_str(), stdout);
    return std::nullopt;
  } catch (const CLI::ParseError& error) {
    throw UsageError(std::string(error.what()) +
                     "; the program to run follows "
                     "after --");
  }
  if (version) {
    std::printf("fusebook-pack %s\n", fuse::version());
    return std::nullopt;
  }
  options.levels = levels_of(levels);
  read_gpus(gpus, &options);
  check(options);
  return options;
}
