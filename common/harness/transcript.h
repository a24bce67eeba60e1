#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "fusebook/device/device.h"
#include "fusebook/harness/options.h"
#include "fusebook/harness/provenance.h"
#include "fusebook/harness/result_value.h"

namespace fuse {

/// A value that may differ from run to run, as it goes into the record.
struct RecordedValue {
  enum class Kind { measured, ratio, varying, place, text };

  Kind kind = Kind::measured;
  std::string name;
  /// Exactly what was printed for it.
  std::string shown;
  /// The value of all but `place` and `text`, with its unit.
  double number = 0;
  std::string unit;
  /// The bounds of `varying`; the lower one also of a `ratio` on a page.
  double low = 0;
  double high = 0;
  /// The measured values that a `ratio` divides.
  std::string above;
  std::string below;
  /// The value of `place` and `text`.
  std::string text;
};

/// What a recipe printed, step by step, with `@{name}` where a value stood
/// that may differ. A literal `@{` in the output is kept as `@@{`.
class Record {
 public:
  struct Step {
    std::string title;
    std::string text;
  };

  /// Throws Error for an empty title or one that was used before.
  void start_step(const std::string& title);
  void add_text(std::string_view text);
  /// Throws Error directly after an '@', which the reader of the record could
  /// not tell from an escape.
  void add_placeholder(const std::string& name);
  /// Throws Error for a name that is taken, reserved or not made of small
  /// letters, digits and underscores.
  void add_name(const std::string& name);
  void add_value(RecordedValue value);
  /// The value of this name, or nullptr.
  const RecordedValue* find(const std::string& name) const;
  /// Replaces the printed form of a value, for example by a padded one.
  void set_shown(const std::string& name, const std::string& shown);
  /// The hash of a kernel's text; once is enough.
  void add_kernel(const std::string& hash) { kernels_.insert(hash); }
  /// One member of the results.
  void add_result(const std::string& name, ResultValue value);

  /// Title of the step that is running; empty before the first.
  const std::string& title() const { return steps_.back().title; }
  const std::vector<Step>& steps() const { return steps_; }

  /// The results as JSON: recipe, device, threads, the recipe's own options,
  /// then every named number.
  std::string results_json(const std::string& recipe, const Options& options,
                           const Device& device, int threads) const;
  /// The whole record as JSON, format 1.
  std::string record_json(const std::string& recipe, const Options& options,
                          const Device& device,
                          const Provenance& provenance) const;

 private:
  std::vector<Step> steps_{Step{}};
  std::vector<std::string> names_;
  std::vector<RecordedValue> values_;
  std::vector<std::pair<std::string, ResultValue>> results_;
  std::set<std::string> kernels_;
};

}  // namespace fuse
