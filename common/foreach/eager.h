#pragma once

#include <source_location>
#include <string_view>
#include <type_traits>

#include "fusebook/trace/recorder.h"

namespace fuse {

/// A call of the library outside of `compile`: what it records runs at its end.
class EagerCall {
 public:
  EagerCall();
  EagerCall(const EagerCall&) = delete;
  EagerCall& operator=(const EagerCall&) = delete;
  /// Nothing recorded survives a call, even one that throws.
  ~EagerCall();

  Recorder& recorder() const { return recorder_; }

 private:
  Recorder& recorder_;
};

/// Calls record(recorder) with the current recording or, outside of `compile`,
/// with one of its own that is then run.
template <class Record>
auto record_or_run(Record record) {
  if (Recorder* const recorder = Recorder::current()) return record(*recorder);
  const EagerCall call;
  if constexpr (std::is_void_v<std::invoke_result_t<Record, Recorder&>>) {
    record(call.recorder());
    call.recorder().finish();
  } else {
    auto result = record(call.recorder());
    call.recorder().finish();
    return result;
  }
}

/// While the function of a foreach_map runs, only the library itself may work on
/// lists: throws Error, naming "foreach_<name>".
void refuse_in_map(std::string_view name, std::source_location place);

}  // namespace fuse
