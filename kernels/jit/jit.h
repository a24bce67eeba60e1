#pragma once

#include <memory>
#include <mutex>
#include <string>

namespace fuse {

/// A shared library, compiled from generated source and loaded.
class Library {
 public:
  explicit Library(void* handle) : handle_(handle) {}
  ~Library();
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  /// Address of an extern "C" symbol. Throws Error if it is missing.
  void* symbol(const char* name) const;

  /// For std::call_once: kernels of several threads share a library, and only
  /// the first may initialise its pointers into the host.
  std::once_flag& prepared() { return prepared_; }

 private:
  void* handle_;
  std::once_flag prepared_;
};

/// Compiles `source` (C++20, no headers) with the host compiler, or takes the
/// result from the disk cache, and loads it; one that was compiled ahead
/// (`load_kernels`) needs neither. Throws NoCompiler if no compiler is found,
/// Error if the compiler fails, is killed, or produces nothing that can be
/// loaded.
std::shared_ptr<Library> build_library(const std::string& source);

/// Number of times this process ran the host compiler, and number of libraries
/// taken from the disk cache, or from a file of packed kernels, instead.
struct JitCounters {
  long compiler_runs = 0;
  long disk_hits = 0;
  long pack_hits = 0;
};
JitCounters jit_counters();

}  // namespace fuse
