#include "fusebook/jit/jit.h"

#include <dlfcn.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <optional>
#include <vector>

#include "fusebook/jit/cpu_levels.h"
#include "fusebook/jit/disk_cache.h"
#include "fusebook/jit/host_compiler.h"
#include "fusebook/jit/instruction_set.h"
#include "fusebook/jit/loaded_libraries.h"
#include "fusebook/jit/pack_file.h"
#include "fusebook/jit/packed_kernels.h"
#include "fusebook/jit/scratch_directory.h"
#include "fusebook/jit/shared_object.h"
#include "fusebook/support/error.h"
#include "fusebook/support/warning.h"

namespace fuse {
namespace {

std::atomic<long> compiler_runs = 0;
std::atomic<long> disk_hits = 0;
std::atomic<long> pack_hits = 0;

std::shared_ptr<Library> load_library(const std::string& object) {
  return std::make_shared<Library>(load_shared_object(object));
}

// Everything that a kernel's code depends on, except its source.
std::string key_prefix(const HostCompiler& compiler) {
  std::string text =
      "Fusebook kernel, format 1\ncompiler:\n" + compiler.identity + "flags:";
  for (const std::string& flag : compile_flags()) text += " " + flag;
  return text + "\ninstruction set: " + instruction_set() + "\nsource:\n";
}

// Compiles and loads inside the cache, so that a finished entry can be renamed
// into place. Null if the cache cannot hold the files needed.
std::shared_ptr<Library> build_in_cache(const HostCompiler& compiler,
                                        const std::string& key,
                                        const std::string& source,
                                        const KernelCache& cache) {
  const ScratchDirectory scratch = cache.make_scratch();
  if (scratch.path().empty()) return nullptr;
  try {
    ++compiler_runs;
    const auto object = compile_object(compiler, source, scratch.path());
    auto library = load_library(object);
    cache.store(key, object, scratch.path());
    return library;
  } catch (const UnusableDirectory& error) {
    cache.warn_unusable(error.problem());
    return nullptr;
  }
}

std::shared_ptr<Library> build_uncached(const HostCompiler& compiler,
                                        const std::string& source) {
  const ScratchDirectory scratch = make_temporary_directory();
  ++compiler_runs;
  return load_library(compile_object(compiler, source, scratch.path()));
}

// An entry that passes the checks and still cannot be loaded comes from a
// system that has changed since.
std::shared_ptr<Library> load_from_cache(const std::string& key,
                                         const KernelCache& cache) {
  const std::optional<std::string> object = cache.load(key);
  if (!object) return nullptr;
  try {
    auto library = load_library(*object);
    ++disk_hits;
    return library;
  } catch (const Error& error) {
    warn(std::string(error.what()) + "; compiling it again");
    return nullptr;
  }
}

std::shared_ptr<Library> load_or_build(const HostCompiler& compiler,
                                       const std::string& prefix,
                                       const std::string& source) {
  const std::string key = prefix + source;
  const KernelCache cache = KernelCache::open();
  auto library = load_from_cache(key, cache);
  if (!library) library = build_in_cache(compiler, key, source, cache);
  if (!library) library = build_uncached(compiler, source);
  return library;
}

// The beginnings of the keys that kernels compiled ahead may have here, best
// first.
const std::vector<std::string>& pack_prefixes() {
  static const auto* const prefixes = [] {
    auto* const made = new std::vector<std::string>;
    for (const std::string& level : levels_run_here()) {
      made->push_back(pack_key("cpu " + level, compile_flags_for(level), ""));
    }
    return made;
  }();
  return *prefixes;
}

// What passes the checks and still cannot be loaded was made for a system
// unlike this one.
std::shared_ptr<Library> load_packed(const std::string& prefix,
                                     const std::string& source) {
  const std::string_view object = find_packed(prefix + source);
  if (object.data() == nullptr) return nullptr;
  try {
    return find_or_build_library(prefix, source, [&] {
      auto library = load_library(std::string(object));
      ++pack_hits;
      return library;
    });
  } catch (const Error& error) {
    warn_once("of " + packed_names() + " one cannot be used: " + error.what());
    return nullptr;
  }
}

std::shared_ptr<Library> find_packed_library(const std::string& source) {
  if (!have_packed_kernels()) return nullptr;
  for (const std::string& prefix : pack_prefixes()) {
    if (auto library = find_library(prefix, source)) return library;
    if (auto library = load_packed(prefix, source)) return library;
  }
  return nullptr;
}

// The compiler selected by the environment, looked up again only if the
// environment changes: a look-up costs more than a cached kernel.
class Toolchain {
 public:
  bool is_current() const {
    for (std::size_t i = 0; i < names.size(); ++i) {
      const char* const value = std::getenv(names[i]);
      if (value == nullptr ? values_[i].has_value() : values_[i] != value) {
        return false;
      }
    }
    return !prefix_.empty();
  }
  void find() {
    prefix_.clear();
    for (std::size_t i = 0; i < names.size(); ++i) {
      const char* const value = std::getenv(names[i]);
      values_[i].reset();
      if (value != nullptr) values_[i] = value;
    }
    compiler_ = find_host_compiler();
    prefix_ = key_prefix(compiler_);
  }
  const HostCompiler& compiler() const { return compiler_; }
  const std::string& prefix() const { return prefix_; }

 private:
  static constexpr std::array<const char*, 3> names = {"FUSEBOOK_CXX", "CXX",
                                                       "PATH"};
  std::array<std::optional<std::string>, 3> values_;
  HostCompiler compiler_;
  std::string prefix_;
};

}  // namespace

Library::~Library() {
  if (handle_ != nullptr) dlclose(handle_);
}

void* Library::symbol(const char* name) const {
  void* const address = dlsym(handle_, name);
  if (address != nullptr) return address;
  throw Error(std::string("the compiled kernel has no symbol '") + name + "'");
}

std::shared_ptr<Library> build_library(const std::string& source) {
  if (auto library = find_packed_library(source)) return library;
  thread_local Toolchain tools;  // one per thread: no lock
  if (tools.is_current()) {
    if (auto library = find_library(tools.prefix(), source)) return library;
  }
  // Detects a compiler replaced in the meantime.
  try {
    tools.find();
  } catch (const NoCompiler& error) {
    if (!have_packed_kernels()) throw;
    throw NoCompiler("a kernel is not in " + packed_names() +
                     " (made for another version, run or CPU), and " +
                     error.what());
  }
  return find_or_build_library(tools.prefix(), source, [&] {
    return load_or_build(tools.compiler(), tools.prefix(), source);
  });
}

JitCounters jit_counters() { return {compiler_runs, disk_hits, pack_hits}; }

}  // namespace fuse
