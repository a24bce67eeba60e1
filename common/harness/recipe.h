#pragma once

#include <concepts>
#include <exception>
#include <functional>
#include <limits>
#include <optional>
#include <ranges>
#include <source_location>
#include <string>
#include <string_view>
#include <vector>

#include "fusebook/bench/benchmark.h"
#include "fusebook/harness/options.h"
#include "fusebook/harness/provenance.h"
#include "fusebook/harness/result_value.h"
#include "fusebook/reports/log.h"
#include "fusebook/support/number_text.h"
#include "fusebook/tensor/tensor.h"
#include "fusebook/trace/scalar.h"

/// What a recipe needs around its own code: a command line, headings, output
/// that a page can be made from, results as JSON, and exit codes.
///
///     void body(const fuse::Options& options) {
///       step("Model");
///       print("layers: ", options["layers"]);
///     }
///     int main(int argc, char** argv) {
///       return fuse::run_recipe("name", argc, argv, body,
///                               {{"layers", 10, 1, 100, "how many layers"}});
///     }

namespace fuse {

/// Runs `body` as the recipe `name` and returns the exit code of the program:
/// 0 success, 1 the run failed, 2 bad command line or environment variable,
/// 3 device not available. Ctrl-C ends the program with 130. Errors are one
/// line on standard error. Files asked for with --json and --record appear
/// only after `body` and all output succeeded.
int run_recipe(const std::string& name, int argc, const char* const* argv,
               const std::function<void(const Options&)>& body,
               OptionSet options = {});

/// The same, named after the file it is called from.
int run_recipe(
    int argc, const char* const* argv,
    const std::function<void(const Options&)>& body, OptionSet options = {},
    const std::source_location& file = std::source_location::current());

/// The same in one of several processes that all run it. Rank 0 prints, writes
/// files, and says what is wrong with the command line or the device; what else
/// `body` throws goes on to the caller.
int run_recipe_on_rank(
    int rank, int argc, const char* const* argv,
    const std::function<void(const Options&)>& body, OptionSet options = {},
    const std::source_location& file = std::source_location::current());

/// Runs `body(ranks, options)` on all ranks of an MPI program, as `run_recipe` does
/// in one process; `run_ranks` is that of fusebook/distributed/ranks.h:
///
///     int main(int argc, char** argv) {
///       return fuse::run_recipe_on(fuse::run_ranks, argc, argv, body);
///     }
template <class RunRanks, class Body>
int run_recipe_on(
    RunRanks run_ranks, int argc, const char* const* argv, const Body& body,
    const OptionSet& options = {},
    const std::source_location& file = std::source_location::current()) {
  return run_ranks([&](auto& ranks) {
    return run_recipe_on_rank(
        ranks.rank(), argc, argv,
        [&](const Options& given) { body(ranks, given); }, options, file);
  });
}

/// Starts the next step: prints its heading and separates what follows.
/// Throws Error for a title that was used before.
void step(const std::string& title);

/// A value that knows how it is printed. One with a name may differ from run
/// to run: the record keeps its name where the output shows its value.
class Printable {
 public:
  Printable(const char* text) : shown_(text) {}
  Printable(std::string text) : shown_(std::move(text)) {}
  Printable(std::string_view text) : shown_(text) {}
  Printable(const Tensor& tensor) : shown_(to_string(tensor)) {}
  Printable(const Shape& shape) : shown_(to_string(shape)) {}
  Printable(const Scalar& scalar) : shown_(to_string(scalar)) {}
  template <std::same_as<bool> T>
  Printable(T value) : shown_(value ? "true" : "false") {}
  template <std::same_as<char> T>
  Printable(T value) : shown_(1, value) {}
  template <class T>
    requires std::floating_point<T> ||
             (std::integral<T> && !std::same_as<T, bool> &&
              !std::same_as<T, char>)
  Printable(T value) : shown_(number_text(value)) {}
  /// A value that may differ.
  Printable(std::string name, std::string shown)
      : name_(std::move(name)), shown_(std::move(shown)) {}

  /// Empty for a value that is the same in every run.
  const std::string& name() const { return name_; }
  const std::string& shown() const { return shown_; }  ///< As it is printed.

 private:
  std::string name_;
  std::string shown_;
};

void print_line(const std::vector<Printable>& values);

/// Prints its arguments one after the other and ends the line. Numbers appear
/// in their shortest exact form, bool as true or false, tensors as torch
/// prints them.
template <class... Args>
void print(const Args&... args) {
  print_line({Printable(args)...});
}

/// Prints a text of any number of lines. Wherever the text contains what one
/// of `varying` shows, the record keeps the name of that value.
void print_block(const std::string& text,
                 const std::vector<Printable>& varying = {});

/// Prints what an error says, a line for each of its parts: they end with a
/// colon or a semicolon. `varying` as above.
void print_error(const std::exception& error,
                 const std::vector<Printable>& varying = {});

/// The value with blanks before it up to `width` characters, to line up columns.
Printable right(const Printable& value, std::size_t width);
/// The same with blanks behind it.
Printable left(const Printable& value, std::size_t width);

/// A number of a table that may differ between runs, but only from `low` to
/// `high`, as `varying` says; its name is that of its column and its row.
struct Within {
  double value;  ///< The number.
  double low;    ///< The least that it may be.
  double high;   ///< The most that it may be.
};

/// A cell of a table: text, or a number that may differ.
struct Cell {
  std::string shown;
  std::optional<Within> varies = {};
};

void print_heads(const std::vector<std::string>& names);
void print_cells(const std::vector<Cell>& cells);

/// The first line of a table: a name for each column. A page can draw it, see
/// `.. recipe-plot::`: over the first column, a picture for each last word
/// ("loss") with a curve for each word before it ("fixed loss").
template <class... Names>
void print_columns(const Names&... names) {
  print_heads({std::string(names)...});
}

template <class Number>
Cell cell_of(Number number) {
  if constexpr (std::same_as<Number, Within>) {
    return {quantity_text(number.value, ""), number};
  } else if constexpr (std::integral<Number>) {
    return {number_text(number)};
  } else {
    return {quantity_text(number, "")};
  }
}

/// A line of the table: whole numbers as they are, others with four significant
/// digits; a range has numbers for as many columns. Throws Error for a number
/// that is not Within its bounds.
template <class... Numbers>
void print_row(const Numbers&... numbers) {
  std::vector<Cell> cells;
  const auto add = [&](const auto& some) {
    if constexpr (std::ranges::range<decltype(some)>) {
      for (const auto& number : some) cells.push_back(cell_of(number));
    } else {
      cells.push_back(cell_of(some));
    }
  };
  (add(numbers), ...);
  print_cells(cells);
}

/// A timing, for example `measured("eager_us", t, "us")`: four significant
/// digits, the unit behind them. It goes into the results, printed or not.
/// Throws Error unless finite and positive.
Printable measured(const std::string& name, double value,
                   const std::string& unit);

/// How many times `below` goes into `above`: three significant digits and an
/// "x". Both are the names of values that were measured before, or what
/// `measured` returned. It goes into the results. Throws Error for any other
/// value and for different units. What is kept as a sample is at least `low`:
/// a run may fall below it by an accident of timing, a page may not.
Printable ratio(const std::string& name, const Printable& above,
                const Printable& below, double low = 0);

/// The same of two medians, which go into the results as NAME_above_us and
/// NAME_below_us.
Printable ratio(const std::string& name, const Measurement& above,
                const Measurement& below, double low = 0);

/// A number that may differ between runs, but only from `low` to `high`. It
/// goes into the results. Throws Error outside these bounds.
Printable varying(const std::string& name, double value, double low,
                  double high, const std::string& unit = "");

/// Text that may differ between machines, for example the name of the CPU.
Printable varying_text(const std::string& name, const std::string& text);

/// A place in the source, "recipes/a.cpp:12": it moves when a recipe is
/// edited. The first form is the place of the call.
Printable place(
    const std::source_location& location = std::source_location::current());
Printable place(const std::string& file, std::int64_t line);

/// Used by `exact`: how it is printed, and what goes into the results.
Printable add_exact(const std::string& name, const Printable& shown,
                    ResultValue value);

/// A value that is the same in every run, printed as it is. It goes into the
/// results.
template <class T>
Printable exact(const std::string& name, const T& value) {
  const Printable text(value);
  if constexpr (std::same_as<T, bool>) {
    return add_exact(name, text, value);
  } else if constexpr (std::integral<T>) {
    return add_exact(name, text, std::int64_t(value));
  } else if constexpr (std::floating_point<T>) {
    return add_exact(name, text, double(value));
  } else {
    return add_exact(name, text, text.shown());
  }
}

/// From here on what a log channel tells is part of the output: recompiles at
/// the moment they happen, for example. Places in it are typed as by `place`,
/// one name for each. Throws Error outside a recipe.
void show_logs(Log channel);

/// Throws Error with `message` and the place of the call unless `holds`.
void check(
    bool holds, const std::string& message,
    const std::source_location& location = std::source_location::current());

}  // namespace fuse
