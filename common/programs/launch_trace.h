#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace fuse {

/// What one launch did.
struct LaunchRecord {
  /// One tensor of the launch: its addresses in all element lists, and which of
  /// `bodies` ran on it.
  struct Row {
    std::vector<const void*> addresses;
    int body = 0;
  };
  /// Names of the operations over elements, for each body.
  std::vector<std::vector<std::string>> bodies;
  std::vector<Row> rows;
  std::int64_t bytes = 0;
};

/// Collects the launches of this thread while it lives.
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
