#include "bench_gpu/gpu_results.h"

#include <cstdio>

#include "fusebook/harness/provenance.h"
#include "fusebook/support/json.h"

namespace fuse::bench {
namespace {

std::string positive(double value) {
  return value > 0 ? json_number(value) : "null";
}

std::string truth(bool value) { return value ? "true" : "false"; }

JsonObject row_of(const std::string& of_case) {
  JsonObject row;
  row.add("case", json_string(of_case));
  return row;
}

std::string line(const GpuStep& step) {
  const double gb_per_s = step.us > 0 ? double(step.bytes) / step.us / 1e3 : 0;
  return row_of(step.of_case)
      .add("variant", json_string(step.variant))
      .add("us", positive(step.us))
      .add("event_us", positive(step.event_us))
      .add("host_us", positive(step.host_us))
      .add("ratio_to_limit", positive(step.ratio_to_limit))
      .add("event_ratio_to_limit", positive(step.event_ratio_to_limit))
      .add("ratio_to_by_hand", positive(step.ratio_to_by_hand))
      .add("gb_per_s", positive(gb_per_s))
      .add("launches", positive(double(step.launches)))
      .add("bytes", positive(double(step.bytes)))
      .line();
}

std::string line(const GpuCompile& compile) {
  return row_of(compile.of_case)
      .add("variant", json_string(compile.variant))
      .add("tensors", std::to_string(compile.tensors))
      .add("us", positive(compile.us))
      .line();
}

std::string line(const GpuBits& bits) {
  return row_of(bits.of_case)
      .add("as_eager", truth(bits.as_eager))
      .add("as_cpu", truth(bits.as_cpu))
      .line();
}

std::string line(const GpuReach& reach) {
  return JsonObject()
      .add("elements", std::to_string(reach.elements))
      .add("updated", truth(reach.updated))
      .line();
}

std::string line(const GpuSkipped& skipped) {
  return row_of(skipped.of_case)
      .add("reason", json_string(skipped.reason))
      .add("failed", truth(skipped.failed))
      .line();
}

template <class Row>
std::string list(const std::vector<Row>& rows) {
  std::vector<std::string> lines;
  for (const Row& row : rows) lines.push_back(line(row));
  return json_array_block(lines, 2);
}

void print_step(const GpuStep& step) {
  std::printf("  %-18s", step.variant.c_str());
  if (step.launches > 0) {
    std::printf(" %5lld launches", static_cast<long long>(step.launches));
  } else {
    std::printf("               ");
  }
  if (step.us > 0) {
    std::printf(" %11.2f us, %11.2f by events, %10.2f on the host", step.us,
                step.event_us, step.host_us);
  }
  if (step.event_ratio_to_limit > 0) {
    std::printf(", %.3f x copy", step.event_ratio_to_limit);
  }
  if (step.ratio_to_by_hand > 0) {
    std::printf(", %.3f x by hand", step.ratio_to_by_hand);
  }
  std::printf("\n");
}

}  // namespace

std::string json_of(const GpuResults& results) {
  const Provenance here = current_provenance();
  return JsonObject()
             .add("device", json_string(here.device))
             .add("simulated", truth(results.simulated))
             .add("scale", std::to_string(results.scale))
             .add("threads", std::to_string(here.threads))
             .add("compiler", json_string(here.compiler))
             .add("system", json_string(here.system))
             .add("date", json_string(here.date))
             .add("rows", list(results.steps))
             .add("compile", list(results.compiles))
             .add("bits", list(results.bits))
             .add("reach", list(results.reach))
             .add("skipped", list(results.skipped))
             .block(0) +
         "\n";
}

void print_case(const GpuResults& results, const std::string& of_case) {
  std::printf("%s\n", of_case.c_str());
  for (const GpuStep& step : results.steps) {
    if (step.of_case == of_case) print_step(step);
  }
  for (const GpuCompile& row : results.compiles) {
    if (row.of_case != of_case || row.us <= 0) continue;
    std::printf("  compiling, %-7s %11.2f ms\n", row.variant.c_str(),
                row.us / 1e3);
  }
  for (const GpuBits& row : results.bits) {
    if (row.of_case != of_case) continue;
    std::printf("  bits of the compiled step: as eager: %s, as the CPU: %s\n",
                row.as_eager ? "yes" : "NO", row.as_cpu ? "yes" : "NO");
  }
  for (const GpuSkipped& row : results.skipped) {
    if (row.of_case != of_case) continue;
    std::printf("  %s: %s\n", row.failed ? "FAILED" : "left out",
                row.reason.c_str());
  }
  std::fflush(stdout);
}

}  // namespace fuse::bench
