#pragma once

#include <atomic>
#include <mutex>
#include <shared_mutex>

namespace fuse {

/// Lets all threads use a stream at the same time, or one capture it alone.
class StreamGate {
 public:
  StreamGate() = default;
  StreamGate(const StreamGate&) = delete;
  StreamGate& operator=(const StreamGate&) = delete;

 private:
  friend class StreamHold;

  std::shared_mutex users_;
  // Who wants to capture keeps new users out, or they might never all be gone.
  std::mutex capture_;
  std::atomic<bool> is_wanted_ = false;
};

/// What a thread does with a stream for a scope. Holds may be nested: inside of
/// its own uses and captures a thread never waits for itself. Must end on the
/// thread that made it.
class StreamHold {
 public:
  enum class Kind {
    use,      ///< calls the driver: waits while another thread captures
    record,   ///< runs a step for what it records: keeps nobody away
    capture,  ///< captures: waits until no other thread uses the stream
  };

  /// A capture must not be nested in a use or another capture.
  StreamHold(StreamGate& gate, Kind kind);
  ~StreamHold();
  StreamHold(const StreamHold&) = delete;
  StreamHold& operator=(const StreamHold&) = delete;

  /// True while this thread holds it so.
  static bool has(const StreamGate& gate, Kind kind);

 private:
  void open();
  void unlink();

  StreamGate& gate_;
  const Kind kind_;
  bool locked_ = false;
  StreamHold* outer_;  // of this thread
};

}  // namespace fuse
