#include "fusebook/harness/recipe.h"

#include <cstdio>
#include <exception>
#include <filesystem>
#include <new>
#include <optional>

#include "fusebook/cuda/gpu_error.h"
#include "fusebook/device/device_registry.h"
#include "fusebook/harness/kernel_hashes.h"
#include "fusebook/harness/recipe_run.h"
#include "fusebook/harness/recipe_signals.h"
#include "fusebook/programs/plan_observer.h"
#include "fusebook/runtime/parallel.h"
#include "fusebook/support/error.h"
#include "fusebook/support/output_file.h"

namespace fuse {
namespace {

constexpr int exit_failed = 1;
constexpr int exit_usage = 2;
constexpr int exit_device = 3;

RecipeRun* running = nullptr;

/// Makes `run` the current one for a scope.
class CurrentRun {
 public:
  explicit CurrentRun(RecipeRun& run) { running = &run; }
  ~CurrentRun() { running = nullptr; }
  CurrentRun(const CurrentRun&) = delete;
  CurrentRun& operator=(const CurrentRun&) = delete;
};

/// The files a run was asked to write. Neither appears unless both can.
class Outputs {
 public:
  explicit Outputs(const Options& options) {
    if (!options.json_file().empty()) {
      json_.emplace("--json", options.json_file());
    }
    if (!options.record_file().empty()) {
      record_.emplace("--record", options.record_file());
    }
    if (json_ && record_ && !json_->aside().empty() &&
        json_->target() == record_->target()) {
      throw UsageError("--json and --record name the same file, '" +
                       json_->target() + "'");
    }
    remove_on_interrupt(json_ ? json_->aside() : "",
                        record_ ? record_->aside() : "");
  }
  ~Outputs() { remove_on_interrupt("", ""); }
  Outputs(const Outputs&) = delete;
  Outputs& operator=(const Outputs&) = delete;

  void write(const std::string& results, const std::string& record) {
    if (json_) json_->write(results);
    if (record_) record_->write(record);
    if (json_) json_->commit();
    if (record_) record_->commit();
  }

 private:
  std::optional<OutputFile> json_;
  std::optional<OutputFile> record_;
};

// The device for a run, which new tensors then lie on; the CPU again later.
class RunDevice {
 public:
  RunDevice(const std::string& name, const Options& options, bool is_silent)
      : device_(choose(name, options, is_silent)) {
    set_default_device(device_);
  }
  ~RunDevice() { set_default_device(cpu_device); }
  RunDevice(const RunDevice&) = delete;
  RunDevice& operator=(const RunDevice&) = delete;

  const Device& get() const { return device_; }

 private:
  static Device choose(const std::string& name, const Options& options,
                       bool is_silent) {
    if (options.device() == "auto") return choose_best(name, is_silent);
    const Device device = parse_device(options.device());
    try {
      require_device(device);
    } catch (const DeviceTooOld&) {
      throw;
    } catch (const Error& error) {
      throw DeviceError("--device " + options.device() + ": " + error.what());
    }
    return device;
  }

  static Device choose_best(const std::string& name, bool is_silent) {
    std::string why;
    const Device device = best_device(&why);
    if (!why.empty() && !is_silent) {
      std::fprintf(stderr, "%s: running on the CPU: %s\n", name.c_str(),
                   why.c_str());
    }
    return device;
  }

  Device device_;
};

void run_body(const std::string& name, const Options& options,
              const std::function<void(const Options&)>& body, RecipeRun& run) {
  if (options.threads() > 0) set_thread_count(options.threads());
  const RunDevice device(name, options, run.is_silent);
  if (run.is_silent) return body(options);
  const Provenance provenance = current_provenance();
  Outputs outputs(options);
  run.wants_record = !options.record_file().empty();
  if (run.wants_record) set_plan_observer(&record_kernel);
  body(options);
  run.body_done = true;
  const Record& record = run.record;
  outputs.write(
      record.results_json(name, options, device.get(), provenance.threads),
      record.record_json(name, options, device.get(), provenance));
}

int report(const std::string& name, const RecipeRun& run,
           const std::string& what, int code) {
  if (run.is_silent) return code;
  const std::string& title = run.record.title();
  const bool in_step = !title.empty() && !run.body_done;
  const std::string where = in_step ? " (in step \"" + title + "\")" : "";
  std::fprintf(stderr, "%s: error: %s%s\n", name.c_str(), what.c_str(),
               where.c_str());
  return code;
}

/// Turns the exception in flight into a message and an exit code.
int report_exception(const std::string& name, const RecipeRun& run) {
  try {
    throw;
  } catch (const DeviceError& error) {
    return report(name, run, error.what(), exit_device);
  } catch (const UsageError& error) {
    return report(name, run, error.what(), exit_usage);
  } catch (const std::bad_alloc&) {
    return report(name, run, "out of memory; use smaller sizes", exit_failed);
  } catch (const std::exception& error) {
    return report(name, run, error.what(), exit_failed);
  } catch (...) {
    return report(name, run, "an exception of unknown type", exit_failed);
  }
}

/// What a process runs: the only one, or one of several.
struct Process {
  bool is_one_of_several = false;
  int rank = 0;
};

/// Runs what the command line asks for.
int run_command(const std::string& name, int argc, const char* const* argv,
                const std::function<void(const Options&)>& body,
                OptionSet options, RecipeRun& run) {
  try {
    const Options parsed = parse_options(argc, argv, std::move(options));
    if (parsed.help_wanted()) {
      write_out(usage_text(name, parsed.own()));
    } else {
      run_body(name, parsed, body, run);
    }
  } catch (const DeviceTooOld& error) {
    write_out("Exiting because kernels cannot be compiled for this device: " +
              std::string(error.what()) + "\n");
  }
  return 0;
}

int run(const std::string& name, int argc, const char* const* argv,
        const std::function<void(const Options&)>& body, OptionSet options,
        Process process,
        std::source_location call = std::source_location::current()) {
  RecipeRun run;
  run.is_silent = process.rank != 0;
  if (running != nullptr) {
    return report(name, run, "a recipe cannot run inside a recipe",
                  exit_failed);
  }
  const RecipeSignals signals;
  const CurrentRun current(run);
  try {
    check_callable(body, "the recipe", call);
    return run_command(name, argc, argv, body, std::move(options), run);
  } catch (const DeviceError&) {
    return report_exception(name, run);
  } catch (const UsageError&) {
    return report_exception(name, run);
  } catch (...) {
    if (process.is_one_of_several) throw;
    return report_exception(name, run);
  }
}

std::string name_of_file(const std::source_location& file) {
  return std::filesystem::path(file.file_name()).stem();
}

}  // namespace

RecipeRun* current_run() { return running; }

int run_recipe(const std::string& name, int argc, const char* const* argv,
               const std::function<void(const Options&)>& body,
               OptionSet options) {
  return run(name, argc, argv, body, std::move(options), {});
}

int run_recipe(int argc, const char* const* argv,
               const std::function<void(const Options&)>& body,
               OptionSet options, const std::source_location& file) {
  return run(name_of_file(file), argc, argv, body, std::move(options), {});
}

int run_recipe_on_rank(int rank, int argc, const char* const* argv,
                       const std::function<void(const Options&)>& body,
                       OptionSet options, const std::source_location& file) {
  return run(name_of_file(file), argc, argv, body, std::move(options),
             {true, rank});
}

}  // namespace fuse
