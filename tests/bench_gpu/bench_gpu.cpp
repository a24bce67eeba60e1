// Measures steps of Adam on a GPU: by the device's events and by the wall
// clock, on the host, beside a copy within the device's memory and beside the
// kernel written by hand; what compiling costs; whether the bits are right. The
// file of --json is written again after every case, so that an interruption
// keeps what was measured.

#include <cstdio>
#include <exception>
#include <string>

#include "bench_gpu/beyond_int.h"
#include "bench_gpu/gpu_cases.h"
#include "bench_gpu/gpu_compile_times.h"
#include "bench_gpu/gpu_results.h"
#include "bench_gpu/gpu_steps.h"
#include "bench_gpu/same_bits.h"
#include "fusebook/device/device_registry.h"
#include "fusebook/harness/options.h"
#include "fusebook/support/error.h"
#include "fusebook/support/output_file.h"

namespace fuse::bench {
namespace {

constexpr const char* program = "bench_gpu";

template <class Row>
void append(std::vector<Row>& rows, const std::vector<Row>& more) {
  rows.insert(rows.end(), more.begin(), more.end());
}

// What cannot be measured does not end the rest.
template <class Measure>
void attempt(const std::string& title, GpuResults& results, Measure measure) {
  try {
    measure();
  } catch (const OutOfMemory& error) {
    results.skipped.push_back({title, error.what(), false});
  } catch (const Error& error) {
    results.skipped.push_back({title, error.what(), true});
  }
}

// What matters most comes first.
void measure_case(const Case& wanted, bool only_bits, GpuResults& results) {
  attempt(wanted.name, results,
          [&] { results.bits.push_back(compare_bits(wanted)); });
  if (only_bits) return;
  attempt(wanted.name, results,
          [&] { append(results.steps, measure_gpu_steps(wanted)); });
  attempt(wanted.name, results,
          [&] { append(results.compiles, measure_gpu_compile_times(wanted)); });
}

void measure_reach(GpuResults& results) {
  constexpr const char* title = "more than 2^31 elements";
  attempt(title, results,
          [&] { results.reach.push_back(check_beyond_int(results.scale)); });
  print_case(results, title);
  for (const GpuReach& reach : results.reach) {
    std::printf("  one tensor of %lld, updated to the last: %s\n",
                static_cast<long long>(reach.elements),
                reach.updated ? "yes" : "NO");
  }
  std::fflush(stdout);
}

void write(const GpuResults& results, const std::string& path) {
  if (path.empty()) return;
  OutputFile file("--json", path);
  file.write(json_of(results));
  file.commit();
}

bool all_is_right(const GpuResults& results) {
  for (const GpuReach& reach : results.reach) {
    if (!reach.updated) return false;
  }
  for (const GpuBits& bits : results.bits) {
    if (!bits.as_eager || !bits.as_cpu) return false;
  }
  for (const GpuSkipped& skipped : results.skipped) {
    if (skipped.failed) return false;
  }
  return true;
}

// cuda, where nothing else was asked for.
Device device_of(const Options& options) {
  const std::string name =
      options.device() == "auto" ? "cuda" : options.device();
  const Device device = parse_device(name);
  if (device.is_cpu()) {
    throw UsageError(
        "--device cpu is measured by ./fusebook bench; use cuda, "
        "cuda:N or cuda-sim");
  }
  try {
    require_device(device);
  } catch (const Error& error) {
    throw DeviceError("--device " + name + ": " + error.what());
  }
  return device;
}

int run(int argc, const char* const* argv) {
  const auto count = std::int64_t(gpu_cases(1).size());
  const std::vector<NumberOption> numbers = {
      {"case", 0, 0, count, "measure this case only; 0: all"},
      {"scale", 1, 1, 1 << 30, "so many times fewer elements"},
      {"only-bits", 0, 0, 1, "1: compare bits and measure nothing"}};
  const Options options = parse_options(argc, argv, numbers);
  if (options.help_wanted()) {
    std::printf("%s", usage_text(program, numbers).c_str());
    return 0;
  }
  const Device device = device_of(options);
  set_default_device(device);
  GpuResults results;
  results.simulated = device.kind == Device::Kind::cuda_sim;
  results.scale = options["scale"];
  std::printf("%s\n", device_model(device).c_str());
  if (results.simulated) {
    std::printf("A simulated GPU is never measured: no times.\n");
  }
  std::int64_t number = 0;
  for (const Case& wanted : gpu_cases(results.scale)) {
    if (options["case"] != 0 && options["case"] != ++number) continue;
    measure_case(wanted, options["only-bits"] == 1, results);
    print_case(results, wanted.name);
    write(results, options.json_file());
  }
  if (options["case"] == 0) measure_reach(results);
  write(results, options.json_file());
  return all_is_right(results) ? 0 : 1;
}

}  // namespace
}  // namespace fuse::bench

int main(int argc, char** argv) {
  const auto report = [](const std::exception& error, int code) {
    std::fprintf(stderr, "%s: error: %s\n", fuse::bench::program, error.what());
    return code;
  };
  try {
    return fuse::bench::run(argc, argv);
  } catch (const fuse::DeviceError& error) {
    return report(error, 3);
  } catch (const fuse::UsageError& error) {
    return report(error, 2);
  } catch (const std::exception& error) {
    return report(error, 1);
  }
}
