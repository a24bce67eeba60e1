#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace fuse {

/// The effects of one launch.
struct LaunchRecord {
  /// One tensor of the launch: its addresses in all element lists, and the
  /// index in `bodies` of the body that ran on it.
  struct Row {
    std::vector<const void*> addresses;
    int body = 0;
  };
  /// Names of the per-element operations, for each body.
  std::vector<std::vector<std::string>> bodies;
  std::vector<Row> rows;
  std::int64_t bytes = 0;
};

/// Collects the launches of this thread during its lifetime.
class LaunchTrace {
 public:
  LaunchTrace();
  LaunchTrace(const LaunchTrace&) = delete;
  LaunchTrace& operator=(const LaunchTrace&) = delete;
  ~LaunchTrace();

  const std::vector<LaunchRecord>& launches() const { return launches_; }

  /// The trace of this thread, or nullptr.
  static LaunchTrace* current();
  void add(LaunchRecord record) { launches_.push_back(std::move(record)); }

 private:
  LaunchTrace* previous_;
  std::vector<LaunchRecord> launches_;
};

}  // namespace fuse
