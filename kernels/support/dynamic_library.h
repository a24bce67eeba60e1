#pragma once

#include <string>

namespace fuse {

/// A library opened to fill a table of functions. It stays open for the rest of
/// the process: its own threads may run in it.
class CallLibrary {
 public:
  /// Opens `name` with dlopen; `problem` tells why it failed.
  explicit CallLibrary(const std::string& name);

  bool is_open() const { return handle_ != nullptr; }
  const std::string& problem() const { return problem_; }
  /// Name of the first missing symbol requested; empty if none.
  const std::string& missing() const { return missing_; }

  /// Stores the address of a symbol in `call`.
  template <class Call>
  void fill(const char* symbol, Call* call) {
    *call = reinterpret_cast<Call>(find(symbol));
  }

 private:
  void* find(const char* symbol);

  void* handle_;
  std::string problem_;
  std::string missing_;
};

}  // namespace fuse
