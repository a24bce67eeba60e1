#include "bench/summary.h"

#include <algorithm>
#include <cstdio>

#include "bench/steps.h"
#include "benchmark.h"
#include "json.h"
#include "provenance.h"

namespace fuse::bench {
namespace {

bool same_figure(const Reading& a, const Reading& b) {
  return a.kind == b.kind && a.of_case == b.of_case && a.variant == b.variant;
}

double median(const std::vector<double>& values) {
  return Measurement(1, values).median();
}

// The limit's loops do the same work: the fastest is what the machine can do.
const Reading* find_limit(const std::vector<Reading>& readings,
                          const std::string& of_case) {
  const Reading* best = nullptr;
  for (const Reading& reading : readings) {
    if (reading.kind != "step" || reading.of_case != of_case) continue;
    if (!reading.variant.starts_with(limit_prefix)) continue;
    if (best == nullptr || reading.us < best->us) best = &reading;
  }
  return best;
}

// The readings of a process with those limits in front.
std::vector<Reading> with_limits(const std::vector<Reading>& readings) {
  std::vector<Reading> all;
  for (const Reading& reading : readings) {
    const Reading* const limit = find_limit(readings, reading.of_case);
    const bool told = std::any_of(all.begin(), all.end(), [&](const auto& r) {
      return r.of_case == reading.of_case && r.variant == "limit";
    });
    if (limit != nullptr && !told) {
      all.push_back(*limit);
      all.back().variant = "limit";
    }
    all.push_back(reading);
  }
  return all;
}

// One figure in all processes.
Row summarise(const Reading& figure,
              const std::vector<std::vector<Reading>>& processes) {
  std::vector<double> times;
  std::vector<double> ratios;
  for (const std::vector<Reading>& readings : processes) {
    const auto found =
        std::find_if(readings.begin(), readings.end(),
                     [&](const auto& r) { return same_figure(r, figure); });
    if (found == readings.end()) continue;
    times.push_back(found->us);
    const Reading* const limit = find_limit(readings, figure.of_case);
    if (limit != nullptr) ratios.push_back(found->us / limit->us);
  }
  Row row{figure.kind, figure.of_case, figure.variant, median(times)};
  if (!ratios.empty()) row.ratio_to_limit = median(ratios);
  row.gb_per_s = double(figure.bytes) / row.us / 1e3;
  return row;
}

std::string positive_number(double value) {
  return value > 0 ? json_number(value) : "null";
}

std::string json_of(const Row& row) {
  JsonObject object;
  object.add("case", json_string(row.of_case))
      .add("variant", json_string(row.variant))
      .add("us", json_number(row.us));
  if (row.kind != "step") return object.line();
  return object.add("ratio_to_limit", positive_number(row.ratio_to_limit))
      .add("gb_per_s", positive_number(row.gb_per_s))
      .line();
}

std::string json_list(const std::vector<Row>& rows, const std::string& kind) {
  std::vector<std::string> lines;
  for (const Row& row : rows) {
    if (row.kind == kind) lines.push_back(json_of(row));
  }
  return json_array_block(lines, 2);
}

void print_row(const Row& row) {
  std::printf("  %-28s %12.2f us", row.variant.c_str(), row.us);
  if (row.ratio_to_limit > 0) {
    std::printf(" %9.3f x limit", row.ratio_to_limit);
  }
  if (row.gb_per_s > 0) std::printf(" %8.1f GB/s", row.gb_per_s);
  std::printf("\n");
}

}  // namespace

std::vector<Row> summarise(const std::vector<std::vector<Reading>>& processes) {
  std::vector<std::vector<Reading>> complete;
  for (const auto& readings : processes) {
    complete.push_back(with_limits(readings));
  }
  std::vector<Reading> figures;
  for (const auto& readings : complete) {
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
    rows.push_back(summarise(figure, complete));
  }
  return rows;
}

const Row* find_row(const std::vector<Row>& rows, const std::string& of_case,
                    const std::string& variant) {
  for (const Row& row : rows) {
    if (row.of_case == of_case && row.variant == variant) return &row;
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
  return JsonObject()
             .add("device", json_string(here.device))
             .add("threads", std::to_string(here.threads))
             .add("compiler", json_string(here.compiler))
             .add("system", json_string(here.system))
             .add("date", json_string(here.date))
             .add("processes", std::to_string(processes))
             .add("rows", json_list(rows, "step"))
             .add("host", json_list(rows, "host"))
             .add("compile", json_list(rows, "compile"))
             .block(0) +
         "\n";
}

}  // namespace fuse::bench
