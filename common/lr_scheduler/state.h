#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace fuse {

/// What a scheduler needs to continue where another one stopped. Plain numbers,
/// so that it can be written to any file; every double must be kept exactly
/// (`best` of a new ReduceLROnPlateau is infinite).
struct SchedulerState {
  std::string kind;  ///< the scheduler's name, such as "LinearLR"
  /// Single numbers are lists of length 1, counts are integers.
  std::map<std::string, std::vector<double>> values;
  /// The parts of a SequentialLR or ChainedScheduler.
  std::vector<SchedulerState> schedulers;

  friend bool operator==(const SchedulerState&,
                         const SchedulerState&) = default;
};

/// Transfers named numbers between a scheduler and its state: each scheduler
/// lists its fields once, for all directions.
class StateFields {
 public:
  enum class Mode {
    save,      ///< into the state
    check,     ///< throws Error if `load` would fail; changes nothing
    load,      ///< from the state, which must have been checked
    note,      ///< into a list of plain numbers, for `put_back`
    put_back,  ///< from that list
  };

  StateFields(Mode mode, SchedulerState& state) : mode_(mode), state_(state) {}

  /// For `note` and `put_back`.
  StateFields(Mode mode, std::vector<double>& numbers, SchedulerState& none)
      : mode_(mode), state_(none), numbers_(&numbers) {}

  void operator()(const char* name, double& number);
  /// Checks that it is an integer of at most 2^53.
  void operator()(const char* name, std::int64_t& count);
  /// Checks that it has as many elements as before.
  void operator()(const char* name, std::vector<double>& list);

  Mode mode() const { return mode_; }
  SchedulerState& state() { return state_; }
  /// Call after checking all fields: throws Error if the state has others too.
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
  std::size_t next_ = 0;  // next number to restore
  std::size_t seen_ = 0;
};

}  // namespace fuse
