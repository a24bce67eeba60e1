#pragma once

#include <string>

namespace fuse {

/// A library that was opened to fill a table of calls. It stays open for the
/// rest of the process: its own threads may run in it.
class CallLibrary {
 public:
  /// Opens `name`, as dlopen takes it. `problem` says why it could not be.
  explicit CallLibrary(const std::string& name);

  bool is_open() const { return handle_ != nullptr; }
  const std::string& problem() const { return problem_; }
  /// Name of the first symbol that was asked for and is missing; empty: none.
  const std::string& missing() const { return missing_; }

  /// Puts the address of a symbol into `call`.
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
