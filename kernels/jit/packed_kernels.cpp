#include "fusebook/jit/packed_kernels.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <memory>

#include "fusebook/jit/cpu_levels.h"
#include "fusebook/jit/pack_file.h"
#include "fusebook/support/join.h"
#include "fusebook/support/warning.h"

namespace fuse {
namespace {

// A file that was read; without kernels if it cannot be used.
struct Pack {
  std::string path;
  bool from_environment = false;
  PackFile file;
  const Pack* next = nullptr;
};

// All of them, the newest first. They are never removed, so that a look-up
// needs no lock that a fork might find taken.
std::atomic<const Pack*> newest = nullptr;

void publish(std::unique_ptr<Pack> pack) {
  Pack* const added = pack.release();
  added->next = newest;
  while (!newest.compare_exchange_weak(added->next, added)) {
  }
}

constexpr std::string_view cpu_kind = "cpu ";

bool is_for_cpu(const std::string& target) {
  return target.starts_with(cpu_kind);
}

bool runs_here(const std::string& target) {
  const auto& here = levels_run_here();
  return std::find(here.begin(), here.end(), target.substr(cpu_kind.size())) !=
         here.end();
}

// The problem with kernels for CPUs none of which is like this one; empty if
// there are none, or some run here.
std::string levels_fault(const std::vector<std::string>& targets) {
  std::vector<std::string> levels;
  for (const std::string& target : targets) {
    if (!is_for_cpu(target)) continue;
    if (runs_here(target)) return {};
    levels.push_back(target.substr(cpu_kind.size()));
  }
  if (levels.empty()) return {};
  const auto& here = levels_run_here();
  return "are for " + join(levels) + ", and this CPU runs " +
         (here.empty() ? "no such level" : here.front() + " at most");
}

std::unique_ptr<Pack> read_pack(const std::string& path) {
  auto pack = std::make_unique<Pack>();
  pack->path = path;
  std::string problem;
  pack->file = PackFile::read(path, &problem);
  const std::string start = "the packed kernels '" + path + "' cannot be used";
  if (!problem.empty()) {
    warn_once(start + ": the file " + problem);
  } else if (auto fault = levels_fault(pack->file.targets()); !fault.empty()) {
    warn_once(start + " on the CPU: they " + fault);
  }
  return pack;
}

bool is_usable(const Pack& pack) {
  const auto& targets = pack.file.targets();
  return std::any_of(targets.begin(), targets.end(), [](const auto& target) {
    return !is_for_cpu(target) || runs_here(target);
  });
}

// The file that the environment names; empty for none.
std::string_view named_file() {
  const char* const named = std::getenv("FUSEBOOK_KERNELS");
  return named == nullptr ? "" : named;
}

bool is_named(const Pack& pack, std::string_view named) {
  return pack.from_environment && pack.path == named;
}

// Reads that file, if it was not read yet. Threads that do it at the same time
// add it twice, which does no harm.
void follow_environment(std::string_view named) {
  if (named.empty()) return;
  for (const Pack* pack = newest; pack != nullptr; pack = pack->next) {
    if (is_named(*pack, named)) return;
  }
  auto pack = read_pack(std::string(named));
  pack->from_environment = true;
  publish(std::move(pack));
}

// Calls `visit(pack)` for every file with kernels until one returns true.
template <class Visit>
void for_each_pack(Visit visit) {
  const std::string_view named = named_file();
  follow_environment(named);
  for (const Pack* pack = newest; pack != nullptr; pack = pack->next) {
    if (pack->file.size() == 0) continue;
    if (pack->from_environment && !is_named(*pack, named)) continue;
    if (visit(*pack)) return;
  }
}

}  // namespace

bool load_kernels(const std::string& path) {
  auto pack = read_pack(path);
  const bool usable = is_usable(*pack);
  if (usable) publish(std::move(pack));
  return usable;
}

bool have_packed_kernels() {
  bool any = false;
  for_each_pack([&](const Pack&) { return any = true; });
  return any;
}

std::string_view find_packed(std::string_view key) {
  std::string_view found;
  for_each_pack([&](const Pack& pack) {
    found = pack.file.find(key);
    return found.data() != nullptr;
  });
  return found;
}

std::vector<std::string> packed_targets() {
  std::vector<std::string> all;
  for_each_pack([&](const Pack& pack) {
    const auto& targets = pack.file.targets();
    all.insert(all.end(), targets.begin(), targets.end());
    return false;
  });
  return all;
}

std::string packed_names() {
  std::vector<std::string> names;
  for_each_pack([&](const Pack& pack) {
    names.push_back("'" + pack.path + "'");
    return false;
  });
  return "the packed kernels " + join(names);
}

}  // namespace fuse
