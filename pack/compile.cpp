#include "compile.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

#include "fusebook/codegen/emit_kernel.h"
#include "fusebook/cuda_sim/gpu_sim_block.h"
#include "fusebook/jit/host_compiler.h"
#include "fusebook/jit/scratch_directory.h"
#include "fusebook/nvrtc/packed_images.h"
#include "fusebook/prelude/gpu_layout.h"
#include "fusebook/support/error.h"
#include "fusebook/support/join.h"

namespace {

using fuse::PackedKernel;
using Job = std::function<PackedKernel()>;

PackedKernel compile_for_cpu(const fuse::HostCompiler& compiler,
                             const std::string& source,
                             const std::string& level) {
  const auto flags = fuse::compile_flags_for(level);
  const auto scratch = fuse::make_temporary_directory();
  return {fuse::pack_key("cpu " + level, flags, source),
          fuse::compile_object(compiler, source, scratch.path(), flags)};
}

PackedKernel compile_for_gpu(const fuse::Nvrtc& nvrtc,
                             const std::string& source,
                             const fuse::GpuTarget& target) {
  return {fuse::packed_image_key(target, nvrtc.major, source),
          fuse::pack_image(fuse::compile_gpu_code(
              nvrtc, source, fuse::gpu_kernel_name, target))};
}

// What the program compiles, and what is compiled for any program.
std::vector<std::string> gpu_sources(const Sources& sources) {
  std::vector<std::string> all = sources.gpu;
  for (std::string& source : fuse::gpu_library_sources()) {
    if (std::find(all.begin(), all.end(), source) == all.end()) {
      all.push_back(std::move(source));
    }
  }
  return all;
}

void add_cpu_jobs(const std::vector<std::string>& sources,
                  const std::vector<std::string>& levels,
                  std::vector<Job>* jobs) {
  if (sources.empty() || levels.empty()) return;
  const auto compiler = fuse::find_host_compiler();
  for (const std::string& source : sources) {
    for (const std::string& level : levels) {
      jobs->emplace_back(
          [=] { return compile_for_cpu(compiler, source, level); });
    }
  }
}

void check_known(const fuse::Nvrtc& nvrtc, const fuse::GpuTarget& target) {
  const auto& known = nvrtc.architectures;
  if (std::find(known.begin(), known.end(), target.architecture) !=
      known.end()) {
    return;
  }
  throw fuse::UsageError(
      "--gpu: '" + nvrtc.library + "' does not compile for " + target.text() +
      "; it knows " + fuse::join(known, ", ", [](int architecture) {
        return "sm_" + std::to_string(architecture);
      }));
}

void add_gpu_jobs(const std::vector<std::string>& sources,
                  const std::vector<fuse::GpuTarget>& targets,
                  std::vector<Job>* jobs) {
  if (targets.empty()) return;
  const fuse::Nvrtc nvrtc = fuse::load_nvrtc();
  for (const fuse::GpuTarget& target : targets) check_known(nvrtc, target);
  for (const std::string& source : sources) {
    for (const fuse::GpuTarget& target : targets) {
      jobs->emplace_back(
          [=] { return compile_for_gpu(nvrtc, source, target); });
    }
  }
}

std::vector<PackedKernel> run_all(const std::vector<Job>& jobs) {
  std::vector<PackedKernel> made(jobs.size());
  std::atomic<std::size_t> next = 0;
  std::mutex mutex;
  std::exception_ptr failure;
  const auto work = [&] {
    for (std::size_t i = next++; i < jobs.size(); i = next++) {
      try {
        made[i] = jobs[i]();
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!failure) failure = std::current_exception();
        next = jobs.size();
      }
    }
  };
  std::vector<std::thread> threads(
      std::max(1U, std::thread::hardware_concurrency()));
  for (std::thread& thread : threads) thread = std::thread(work);
  for (std::thread& thread : threads) thread.join();
  if (failure) std::rethrow_exception(failure);
  return made;
}

}  // namespace

std::vector<PackedKernel> compile_all(const Sources& sources,
                                      const Options& options) {
  std::vector<Job> jobs;
  add_cpu_jobs(sources.cpu, options.levels, &jobs);
  const std::vector<std::string> for_gpus = gpu_sources(sources);
  add_gpu_jobs(for_gpus, options.gpus, &jobs);
  if (options.simulator) {
    std::vector<std::string> simulated;
    for (const std::string& text : for_gpus) {
      simulated.push_back(fuse::sim_kernel_source(text, fuse::gpu_kernel_name));
    }
    add_cpu_jobs(simulated, options.levels, &jobs);
  }
  return run_all(jobs);
}
