#include <fmt/core.h>
#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "fusebook/harness/recipe.h"
#include "fusebook/harness/recipe_run.h"
#include "fusebook/support/error.h"
#include "fusebook/support/source_place.h"

namespace fuse {
namespace {

Record& record_of_run() {
  if (current_run() == nullptr) {
    throw Error("named values exist only inside run_recipe");
  }
  return current_run()->record;
}

Printable keep(RecordedValue value) {
  Record& record = record_of_run();
  record.add_name(value.name);
  Printable shown(value.name, value.shown);
  record.add_value(std::move(value));
  return shown;
}

Printable keep_number(const RecordedValue& value) {
  Printable shown = keep(value);
  record_of_run().add_result(value.name, value.number);
  return shown;
}

const RecordedValue& measured_value(const std::string& ratio,
                                    const Printable& part) {
  const std::string& name = part.name().empty() ? part.shown() : part.name();
  const RecordedValue* value = record_of_run().find(name);
  if (value == nullptr || value->kind != RecordedValue::Kind::measured) {
    throw Error("the ratio '" + ratio + "' needs measured values, but '" +
                name + "' is not one");
  }
  return *value;
}

bool wants_bold() {
  return isatty(STDOUT_FILENO) == 1 && std::getenv("NO_COLOR") == nullptr;
}

void record_value(const Printable& value) {
  if (current_run() == nullptr) return;
  Record& record = current_run()->record;
  if (value.name().empty()) {
    record.add_text(value.shown());
  } else {
    record.add_placeholder(value.name());
  }
}

/// The varying value whose text stands at `start`, if any; the longest wins.
const Printable* find_varying(const std::string& text, std::size_t start,
                              const std::vector<Printable>& varying) {
  const Printable* best = nullptr;
  for (const Printable& value : varying) {
    const std::string& shown = value.shown();
    if (shown.empty() || text.compare(start, shown.size(), shown) != 0) {
      continue;
    }
    if (best == nullptr || shown.size() > best->shown().size()) best = &value;
  }
  return best;
}

void record_block(const std::string& text,
                  const std::vector<Printable>& varying) {
  for (std::size_t i = 0; i < text.size();) {
    const Printable* value = find_varying(text, i, varying);
    if (value == nullptr) {
      record_value(text.substr(i, 1));
      ++i;
    } else {
      record_value(*value);
      i += value->shown().size();
    }
  }
}

Printable padded(const Printable& value, std::size_t width, bool on_the_left) {
  const std::size_t size = value.shown().size();
  const std::string blank(width > size ? width - size : 0, ' ');
  std::string shown =
      on_the_left ? blank + value.shown() : value.shown() + blank;
  if (value.name().empty()) return Printable(std::move(shown));
  record_of_run().set_shown(value.name(), shown);
  return Printable(value.name(), std::move(shown));
}

RecordedValue varying_number(const std::string& name, double value, double low,
                             double high) {
  const bool inside = value >= low && value <= high;
  if (!inside) {
    throw Error(fmt::format("the value '{}' is {}; it must lie from {} to {}",
                            name, number_text(value), number_text(low),
                            number_text(high)));
  }
  RecordedValue kept;
  kept.kind = RecordedValue::Kind::varying;
  kept.name = name;
  kept.number = value;
  kept.low = low;
  kept.high = high;
  return kept;
}

Printable aligned(const Printable& cell, const std::vector<Printable>& before) {
  const std::size_t size = cell.shown().size() + 2;
  return padded(cell, before.empty() ? 4 : std::max<std::size_t>(14, size),
                true);
}

/// "flat_loss_20": the column "flat loss" in the row of 20.
std::string name_of_cell(std::size_t column, const std::string& row) {
  const std::vector<std::string>& columns = current_run()->columns;
  if (column >= columns.size()) {
    throw Error("a row has more numbers than print_columns named columns");
  }
  std::string name = columns[column] + "_" + row;
  for (char& c : name) {
    c = c == ' ' ? '_' : char(std::tolower(static_cast<unsigned char>(c)));
  }
  return name;
}

Printable keep_cell(const Cell& cell, std::size_t column,
                    const std::string& row) {
  record_of_run();
  RecordedValue kept =
      varying_number(name_of_cell(column, row), cell.varies->value,
                     cell.varies->low, cell.varies->high);
  kept.shown = cell.shown;
  return keep(std::move(kept));
}

}  // namespace

void write_out(std::string_view text) {
  if (current_run() != nullptr && current_run()->is_silent) return;
  const bool written =
      std::fwrite(text.data(), 1, text.size(), stdout) == text.size() &&
      std::fflush(stdout) == 0;
  if (written) return;
  const std::string reason = std::strerror(errno);
  std::clearerr(stdout);
  throw Error("cannot write to standard output: " + reason);
}

void step(const std::string& title) {
  bool is_first = false;
  if (current_run() != nullptr) {
    Record& record = current_run()->record;
    is_first = record.steps().size() == 1 && record.steps()[0].text.empty();
    record.start_step(title);
  }
  const std::string heading =
      wants_bold() ? "\033[1m== " + title + "\033[0m\n" : "== " + title + "\n";
  write_out(is_first ? heading : "\n" + heading);
}

void print_line(const std::vector<Printable>& values) {
  std::string line;
  for (const Printable& value : values) {
    line += value.shown();
    record_value(value);
  }
  record_value("\n");
  write_out(line + "\n");
}

void print_block(const std::string& text,
                 const std::vector<Printable>& varying) {
  const std::string block = text.ends_with('\n') ? text : text + "\n";
  record_block(block, varying);
  write_out(block);
}

void print_error(const std::exception& error,
                 const std::vector<Printable>& varying) {
  std::string text;
  for (const char* next = error.what(); *next != '\0'; ++next) {
    const bool ends_part = *next == ' ' && !text.empty() &&
                           (text.back() == ':' || text.back() == ';');
    if (ends_part) {
      text += "\n  ";
    } else {
      text += *next;
    }
  }
  print_block(text, varying);
}

// Names of columns hold single blanks, so two blanks are a border.
void print_heads(const std::vector<std::string>& names) {
  if (current_run() != nullptr) current_run()->columns = names;
  std::vector<Printable> line;
  for (const std::string& name : names) line.push_back(aligned(name, line));
  print_line(line);
}

void print_cells(const std::vector<Cell>& cells) {
  std::vector<Printable> line;
  for (std::size_t k = 0; k < cells.size(); ++k) {
    const Cell& cell = cells[k];
    line.push_back(aligned(cell.varies ? keep_cell(cell, k, cells[0].shown)
                                       : Printable(cell.shown),
                           line));
  }
  print_line(line);
}

Printable right(const Printable& value, std::size_t width) {
  return padded(value, width, true);
}

Printable left(const Printable& value, std::size_t width) {
  return padded(value, width, false);
}

Printable measured(const std::string& name, double value,
                   const std::string& unit) {
  if (!std::isfinite(value) || value <= 0) {
    throw Error(fmt::format(
        "the measured value '{}' is {}; it must be finite and positive", name,
        number_text(value)));
  }
  RecordedValue kept;
  kept.kind = RecordedValue::Kind::measured;
  kept.name = name;
  kept.shown = quantity_text(value, unit);
  kept.number = value;
  kept.unit = unit;
  return keep_number(kept);
}

Printable ratio(const std::string& name, const Printable& above,
                const Printable& below, double low) {
  const RecordedValue& a = measured_value(name, above);
  const RecordedValue& b = measured_value(name, below);
  if (a.unit != b.unit) {
    throw Error("the ratio '" + name + "' divides " + a.unit + " by " + b.unit +
                "; both must have the same unit");
  }
  RecordedValue kept;
  kept.kind = RecordedValue::Kind::ratio;
  kept.name = name;
  kept.number = a.number / b.number;
  kept.unit = "x";
  kept.shown = quantity_text(kept.number, kept.unit);
  kept.low = low;
  kept.above = a.name;
  kept.below = b.name;
  return keep_number(kept);
}

Printable ratio(const std::string& name, const Measurement& above,
                const Measurement& below, double low) {
  return ratio(name, measured(name + "_above_us", above.median_us(), "us"),
               measured(name + "_below_us", below.median_us(), "us"), low);
}

Printable varying(const std::string& name, double value, double low,
                  double high, const std::string& unit) {
  RecordedValue kept = varying_number(name, value, low, high);
  kept.shown = number_text(value);
  if (!unit.empty()) kept.shown += unit == "x" ? unit : " " + unit;
  kept.unit = unit;
  return keep_number(kept);
}

Printable varying_text(const std::string& name, const std::string& text) {
  RecordedValue kept;
  kept.kind = RecordedValue::Kind::text;
  kept.name = name;
  kept.text = text;
  kept.shown = text;
  return keep(std::move(kept));
}

Printable place(const std::source_location& location) {
  return place(location.file_name(), location.line());
}

Printable place(const std::string& file, std::int64_t line) {
  record_of_run();
  const int count = ++current_run()->places;
  RecordedValue kept;
  kept.kind = RecordedValue::Kind::place;
  kept.name = "place";
  if (count > 1) kept.name.append("_").append(std::to_string(count));
  kept.text = at(short_path(file), line);
  kept.shown = kept.text;
  return keep(std::move(kept));
}

Printable add_exact(const std::string& name, const Printable& shown,
                    ResultValue value) {
  record_of_run().add_name(name);
  record_of_run().add_result(name, std::move(value));
  return shown;
}

void check(bool holds, const std::string& message,
           const std::source_location& location) {
  if (holds) return;
  throw Error(
      fmt::format("check failed: {}, at {}", message, short_place(location)));
}

}  // namespace fuse
