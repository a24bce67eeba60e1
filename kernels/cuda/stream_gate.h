#pragma once

#include <atomic>
#include <mutex>
#include <shared_mutex>

namespace fuse {

/// Lets all threads use a stream concurrently, or one capture it exclusively.
class StreamGate {
 public:
  StreamGate() = default;
  StreamGate(const StreamGate&) = delete;
  StreamGate& operator=(const StreamGate&) = delete;

 private:
  friend class StreamHold;

  std::shared_mutex users_;
  // A thread that wants to capture blocks new users, or it might wait forever.
  std::mutex capture_;
  std::atomic<bool> is_wanted_ = false;
};

/// A thread's use of a stream during a scope. Holds may be nested: within its
/// own uses and captures a thread never waits for itself. Must end on the
/// thread that created it.
class StreamHold {
 public:
  enum class Kind {
    use,      ///< calls the driver: waits while another thread captures
    record,   ///< runs a step to record it: blocks no one
    capture,  ///< captures: waits until no other thread uses the stream
  };

  /// A capture must not be nested in a use or another capture.
  StreamHold(StreamGate& gate, Kind kind);
  ~StreamHold();
  StreamHold(const StreamHold&) = delete;
  StreamHold& operator=(const StreamHold&) = delete;

  /// True while this thread has a hold of this kind.
  static bool has(const StreamGate& gate, Kind kind);

 private:
  void open();
  void unlink();

  StreamGate& gate_;
  const Kind kind_;
  bool locked_ = false;
  StreamHold* outer_;  // on this thread
};

}  // namespace fuse
