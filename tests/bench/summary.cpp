#include "bench/summary.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "fusebook/bench/benchmark.h"
#include "fusebook/harness/provenance.h"
#include "fusebook/support/available_memory.h"
#include "fusebook/support/json.h"

namespace fuse::bench {
namespace {

constexpr const char* memory = "memory";

bool same_figure(const Reading& a, const Reading& b) {
  return a.kind == b.kind && a.of_case == b.of_case && a.variant == b.variant;
}

double median(const std::vector<double>& values) {
  return Measurement(1, values).median();
}

// One figure in all processes.
Row summarise(const Reading& figure,
              const std::vector<std::vector<Reading>>& processes) {
  std::vector<double> times;
  std::vector<double> ratios;
  std::int64_t most_bytes = 0;
  for (const std::vector<Reading>& readings : processes) {
    const auto found =
        std::find_if(readings.begin(), readings.end(),
                     [&](const auto& r) { return same_figure(r, figure); });
    if (found == readings.end()) continue;
    times.push_back(found->us);
    most_bytes = std::max(most_bytes, found->bytes);
    if (found->divisor_us > 0) ratios.push_back(found->us / found->divisor_us);
  }
  Row row{figure.kind, figure.of_case, figure.variant, median(times)};
  row.divisor = figure.divisor;
  if (!ratios.empty()) row.ratio = median(ratios);
  if (figure.kind == memory) {
    row.bytes = most_bytes;
  } else {
    row.gb_per_s = double(figure.bytes) / row.us / 1e3;
  }
  return row;
}

std::string positive_number(double value) {
  return value > 0 ? json_number(value) : "null";
}

std::string json_of(const Row& row) {
  JsonObject object;
  object.add("case", json_string(row.of_case))
      .add("variant", json_string(row.variant));
  if (row.kind == memory) {
    return object.add("bytes", std::to_string(row.bytes)).line();
  }
  object.add("us", json_number(row.us));
  if (!row.divisor.empty()) {
    object.add("ratio", positive_number(row.ratio))
        .add("divided_by", json_string(row.divisor));
  }
  if (row.kind == "step") {
    object.add("gb_per_s", positive_number(row.gb_per_s));
  }
  return object.line();
}

std::string json_list(const std::vector<Row>& rows, const std::string& kind) {
  std::vector<std::string> lines;
  for (const Row& row : rows) {
    if (row.kind == kind) lines.push_back(json_of(row));
  }
  return json_array_block(lines, 2);
}

void print_row(const Row& row) {
  if (row.kind == memory) {
    std::printf("  %-32s %15s\n", row.variant.c_str(),
                format_bytes(row.bytes).c_str());
    return;
  }
  std::printf("  %-32s %12.2f us", row.variant.c_str(), row.us);
  if (row.ratio > 0) {
    std::printf(" %9.3f x %s", row.ratio, row.divisor.c_str());
  }
  if (row.gb_per_s > 0) std::printf(" %8.1f GB/s", row.gb_per_s);
  std::printf("\n");
}

}  // namespace

std::vector<Row> summarise(const std::vector<std::vector<Reading>>& processes) {
  std::vector<Reading> figures;
  for (const auto& readings : processes) {
    for (const Reading& reading : readings) {
      const bool known = std::any_of(
          figures.begin(), figures.end(),
          [&](const Reading& figure) { return same_figure(figure, reading); });
      if (!known) figures.push_back(reading);
    }
  }
  std::vector<Row> rows;
  rows.reserve(figures.size());
  for (const Reading& figure : figures) {
    rows.push_back(summarise(figure, processes));
  }
  return rows;
}

const Row* find_row(const std::vector<Row>& rows, const std::string& kind,
                    const std::string& of_case, const std::string& variant) {
  for (const Row& row : rows) {
    if (row.kind == kind && row.of_case == of_case && row.variant == variant) {
      return &row;
    }
  }
  return nullptr;
}

void print_rows(const std::vector<Row>& rows) {
  std::string title;
  for (const Row& row : rows) {
    const std::string wanted =
        (row.kind == "step" ? "" : row.kind + ", ") + row.of_case;
    if (wanted != title) std::printf("%s\n", wanted.c_str());
    title = wanted;
    print_row(row);
  }
  std::fflush(stdout);
}

std::string json_of(const std::vector<Row>& rows, std::size_t processes) {
  const Provenance here = current_provenance();
  JsonObject object;
  object.add("device", json_string(here.device))
      .add("threads", std::to_string(here.threads))
      .add("compiler", json_string(here.compiler))
      .add("system", json_string(here.system))
      .add("date", json_string(here.date))
      .add("processes", std::to_string(processes))
      .add("rows", json_list(rows, "step"));
  for (const char* const kind :
       {"gradients", "groups", memory, "host", "compile"}) {
    object.add(kind, json_list(rows, kind));
  }
  return object.block(0) + "\n";
}

}  // namespace fuse::bench
