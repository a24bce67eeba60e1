#pragma once

#include <map>
#include <string>

#include "fusebook/reports/log.h"

namespace fuse {

class Printable;

/// The log channels that are part of a recipe's output. The destructor restores
/// them.
class ShownLogs {
 public:
  ShownLogs() = default;
  ~ShownLogs();
  ShownLogs(const ShownLogs&) = delete;
  ShownLogs& operator=(const ShownLogs&) = delete;

  void show(Log channel);

 private:
  void receive(const LogMessage& message);
  const Printable& typed(const LogPlace& location);

  std::map<Log, bool> was_on_;  // of the channels shown
  std::map<std::string, Printable> places_;
};

}  // namespace fuse
