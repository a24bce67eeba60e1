#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace fuse {

/// What a scheduler needs to go on where another one stopped. Plain numbers,
/// so that it can be written to any file; every double must be kept exactly
/// (`best` of a fresh ReduceLROnPlateau is infinite).
struct SchedulerState {
  std::string kind;  ///< the scheduler's name, such as "LinearLR"
  /// Single numbers are lists of one, counts are whole numbers.
  std::map<std::string, std::vector<double>> values;
  /// Of a SequentialLR or ChainedScheduler: its parts.
  std::vector<SchedulerState> schedulers;

  friend bool operator==(const SchedulerState&,
                         const SchedulerState&) = default;
};

/// Carries named numbers between a scheduler and its state: each scheduler
/// lists its fields once, for all three directions.
class StateFields {
 public:
  enum class Mode {
    save,      ///< into the state
    check,     ///< throws Error if `load` could not; changes nothing
    load,      ///< from the state, which was checked
    note,      ///< into a list of plain numbers, for `put_back`
    put_back,  ///< from that list
  };

  StateFields(Mode mode, SchedulerState& state) : mode_(mode), state_(state) {}

  /// For `note` and `put_back`.
  StateFields(Mode mode, std::vector<double>& numbers, SchedulerState& none)
      : mode_(mode), state_(none), numbers_(&numbers) {}

  void operator()(const char* name, double& number);
  /// Checked to be a whole number of at most 2^53.
  void operator()(const char* name, std::int64_t& count);
  /// Checked to have as many elements as before.
  void operator()(const char* name, std::vector<double>& list);

  Mode mode() const { return mode_; }
  SchedulerState& state() { return state_; }
  /// After a check of all fields: throws Error if the state has others too.
  void check_no_others() const;

 private:
  std::vector<double> exchange(const char* name,
                               const std::vector<double>& list);
  const std::vector<double>& stored(const char* name, std::size_t size) const;

  bool flat() const { return numbers_ != nullptr; }
  double flat(double number);

  Mode mode_;
  SchedulerState& state_;
  std::vector<double>* numbers_ = nullptr;
  std::size_t next_ = 0;  // of the numbers that are put back
  std::size_t seen_ = 0;
};

}  // namespace fuse
