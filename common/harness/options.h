#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "fusebook/support/error.h"

namespace fuse {

/// The device asked for cannot be had. Recipes end with exit code 3 on it.
class DeviceError : public Error {
 public:
  using Error::Error;
};

/// A whole-number option of one recipe: `--name N`.
struct NumberOption {
  std::string name;    ///< without the dashes
  std::int64_t value;  ///< the default, later what was given
  std::int64_t low;    ///< the least that is taken
  std::int64_t high;   ///< the most that is taken
  std::string help;    ///< for --help
};

/// An option of one recipe that takes one of a few names: `--name WORD`.
struct ChoiceOption {
  std::string name;                  ///< without the dashes
  std::string value;                 ///< the default, later what was given
  std::vector<std::string> choices;  ///< what is taken
  std::string help;                  ///< for --help
};

/// The options that one recipe has besides those of all.
struct OptionSet {
  OptionSet(std::initializer_list<NumberOption> list) : numbers(list) {}
  OptionSet(std::vector<NumberOption> number_list = {},
            std::vector<ChoiceOption> choice_list = {})
      : numbers(std::move(number_list)), choices(std::move(choice_list)) {}

  std::vector<NumberOption> numbers;  ///< `--name N`
  std::vector<ChoiceOption> choices;  ///< `--name WORD`
};

/// The options a recipe was started with.
class Options {
 public:
  explicit Options(OptionSet own = {}) : own_(std::move(own)) {}

  /// The number given as `--name`. Throws Error when the recipe has no such
  /// option.
  std::int64_t operator[](const std::string& name) const;
  /// The word given as `--name`. Throws Error when the recipe has no such
  /// option.
  const std::string& choice(const std::string& name) const;
  /// The recipe's own options with the values of this run.
  const OptionSet& own() const { return own_; }

  /// The device asked for: "auto", or a name as parse_device takes it.
  const std::string& device() const { return device_; }
  /// Number of threads asked for, 0 for the default.
  int threads() const { return threads_; }
  /// File for the results, empty for none.
  const std::string& json_file() const { return json_file_; }
  /// File for the record that the book's samples are made from.
  const std::string& record_file() const { return record_file_; }
  /// Whether `--help` was given.
  bool help_wanted() const { return help_wanted_; }

 private:
  friend class CommandLine;

  OptionSet own_;
  std::string device_ = "auto";
  int threads_ = 0;
  std::string json_file_;
  std::string record_file_;
  bool help_wanted_ = false;
};

/// Reads a command line: `--name value` or `--name=value`. Throws UsageError
/// for anything that cannot be used. Whether the device is there is found out
/// later.
Options parse_options(int argc, const char* const* argv, OptionSet own);

/// The text of `--help`.
std::string usage_text(const std::string& program, const OptionSet& own);

}  // namespace fuse
