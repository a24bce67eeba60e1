#include "bench/summary.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "fusebook/bench/benchmark.h"
#include "fusebook/harness/provenance.h"
#include "fusebook/json/json.h"
#include "fusebook/support/available_memory.h"

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

Json positive_number(double value) {
  return value > 0 ? json_number(value) : Json();
}

Json row_json(const Row& row) {
  Json json = {{"case", row.of_case}, {"variant", row.variant}};
  if (row.kind == memory) {
    json["bytes"] = row.bytes;
    return json;
  }
  json["us"] = json_number(row.us);
  if (!row.divisor.empty()) {
    json["ratio"] = positive_number(row.ratio);
    json["divided_by"] = row.divisor;
  }
  if (row.kind == "step") json["gb_per_s"] = positive_number(row.gb_per_s);
  return json;
}

Json rows_json(const std::vector<Row>& rows, const std::string& kind) {
  Json list = Json::array();
  for (const Row& row : rows) {
    if (row.kind == kind) list.push_back(row_json(row));
  }
  return list;
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
  Json json = {{"device", here.device},
               {"threads", here.threads},
               {"compiler", here.compiler},
               {"system", here.system},
               {"date", here.date},
               {"processes", processes},
               {"rows", rows_json(rows, "step")}};
  for (const char* const kind :
       {"tail", "gradients", "groups", memory, "host", "compile"}) {
    json[kind] = rows_json(rows, kind);
  }
  return json_text(json);
}

}  // namespace fuse::bench
