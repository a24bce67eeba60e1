#include "bench_gpu/gpu_results.h"

#include <cstdio>

#include "fusebook/harness/provenance.h"
#include "fusebook/json/json.h"

namespace fuse::bench {
namespace {

Json positive(double value) { return value > 0 ? json_number(value) : Json(); }

Json row_json(const GpuStep& step) {
  const double gb_per_s = step.us > 0 ? double(step.bytes) / step.us / 1e3 : 0;
  return {{"case", step.of_case},
          {"variant", step.variant},
          {"us", positive(step.us)},
          {"event_us", positive(step.event_us)},
          {"host_us", positive(step.host_us)},
          {"ratio_to_limit", positive(step.ratio_to_limit)},
          {"event_ratio_to_limit", positive(step.event_ratio_to_limit)},
          {"ratio_to_by_hand", positive(step.ratio_to_by_hand)},
          {"gb_per_s", positive(gb_per_s)},
          {"launches", positive(double(step.launches))},
          {"bytes", positive(double(step.bytes))}};
}

Json row_json(const GpuCompile& compile) {
  return {{"case", compile.of_case},
          {"variant", compile.variant},
          {"tensors", compile.tensors},
          {"us", positive(compile.us)}};
}

Json row_json(const GpuBits& bits) {
  return {{"case", bits.of_case},
          {"as_eager", bits.as_eager},
          {"as_cpu", bits.as_cpu}};
}

Json row_json(const GpuReach& reach) {
  return {{"elements", reach.elements}, {"updated", reach.updated}};
}

Json row_json(const GpuSkipped& skipped) {
  return {{"case", skipped.of_case},
          {"reason", skipped.reason},
          {"failed", skipped.failed}};
}

template <class Row>
Json rows_json(const std::vector<Row>& rows) {
  Json list = Json::array();
  for (const Row& row : rows) list.push_back(row_json(row));
  return list;
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
  return json_text({{"device", here.device},
                    {"simulated", results.simulated},
                    {"scale", results.scale},
                    {"threads", here.threads},
                    {"compiler", here.compiler},
                    {"system", here.system},
                    {"date", here.date},
                    {"rows", rows_json(results.steps)},
                    {"compile", rows_json(results.compiles)},
                    {"bits", rows_json(results.bits)},
                    {"reach", rows_json(results.reach)},
                    {"skipped", rows_json(results.skipped)}});
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
    std::printf("  %s: %s\n", row.failed ? "FAILED" : "skipped",
                row.reason.c_str());
  }
  std::fflush(stdout);
}

}  // namespace fuse::bench
