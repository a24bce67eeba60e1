#include "fusebook/jit/loaded_libraries.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "fusebook/support/content_hash.h"
#include "fusebook/support/error.h"

namespace fuse {
namespace {

enum State : int { building, ready, failed };

struct Slot {
  std::string prefix;
  std::string source;
  pid_t builder = getpid();
  std::atomic<int> state = building;
  // Set before `state` leaves `building`, and never changed after that.
  std::shared_ptr<Library> library;
  std::string error;

  bool holds(std::string_view a, std::string_view b) const {
    return prefix == a && source == b;
  }
  // The building thread does not exist in a forked child.
  bool abandoned() const { return state == building && builder != getpid(); }
};

using Slots = std::unordered_multimap<std::uint64_t, std::shared_ptr<Slot>>;

// Beyond this number, unused libraries are unloaded.
constexpr std::size_t capacity = 256;

struct Libraries {
  std::mutex mutex;
  Slots slots;
};

void lock_for_fork();
void unlock_after_fork();

// Never destroyed: kernels may run while the process exits.
Libraries& libraries() {
  static auto* const instance = [] {
    pthread_atfork(lock_for_fork, unlock_after_fork, unlock_after_fork);
    return new Libraries;
  }();
  return *instance;
}

void lock_for_fork() { libraries().mutex.lock(); }
void unlock_after_fork() { libraries().mutex.unlock(); }

void drop_unused(Slots& slots) {
  if (slots.size() < capacity) return;
  std::erase_if(slots, [](const auto& item) {
    return item.second->state == ready && item.second->library.use_count() == 1;
  });
}

Slots::iterator find_slot(Slots& slots, std::uint64_t hash,
                          std::string_view prefix, std::string_view source) {
  const auto [begin, end] = slots.equal_range(hash);
  const auto found = std::find_if(begin, end, [&](const auto& item) {
    return item.second->holds(prefix, source);
  });
  return found == end ? slots.end() : found;
}

// Returns the slot of the key, and whether the caller must fill it.
std::pair<std::shared_ptr<Slot>, bool> find_or_add(std::uint64_t hash,
                                                   std::string_view prefix,
                                                   std::string_view source) {
  Libraries& all = libraries();
  const std::lock_guard lock(all.mutex);
  const auto found = find_slot(all.slots, hash, prefix, source);
  if (found != all.slots.end()) {
    if (!found->second->abandoned()) return {found->second, false};
    all.slots.erase(found);
  }
  drop_unused(all.slots);
  auto slot = std::make_shared<Slot>();
  slot->prefix = prefix;
  slot->source = source;
  all.slots.emplace(hash, slot);
  return {std::move(slot), true};
}

void remove_slot(std::uint64_t hash, const std::shared_ptr<Slot>& slot) {
  Libraries& all = libraries();
  const std::lock_guard lock(all.mutex);
  const auto found = find_slot(all.slots, hash, slot->prefix, slot->source);
  if (found != all.slots.end() && found->second == slot) {
    all.slots.erase(found);
  }
}

void finish(Slot& slot, State state) {
  slot.state = state;
  slot.state.notify_all();
}

std::shared_ptr<Library> fill(
    std::uint64_t hash, const std::shared_ptr<Slot>& slot,
    const std::function<std::shared_ptr<Library>()>& build) {
  try {
    slot->library = build();
  } catch (const std::exception& error) {
    slot->error = error.what();
    remove_slot(hash, slot);
    finish(*slot, failed);
    throw;
  }
  finish(*slot, ready);
  return slot->library;
}

std::uint64_t hash_key(std::string_view prefix, std::string_view source) {
  return content_hash(source, content_hash(prefix));
}

}  // namespace

std::shared_ptr<Library> find_library(std::string_view prefix,
                                      std::string_view source) {
  Libraries& all = libraries();
  const std::lock_guard lock(all.mutex);
  const auto found =
      find_slot(all.slots, hash_key(prefix, source), prefix, source);
  const bool loaded = found != all.slots.end() && found->second->state == ready;
  return loaded ? found->second->library : nullptr;
}

std::shared_ptr<Library> find_or_build_library(
    std::string_view prefix, std::string_view source,
    const std::function<std::shared_ptr<Library>()>& build) {
  const std::uint64_t hash = hash_key(prefix, source);
  const auto [slot, mine] = find_or_add(hash, prefix, source);
  if (mine) return fill(hash, slot, build);
  slot->state.wait(building);
  if (slot->state == failed) throw Error(slot->error);
  return slot->library;
}

void forget_libraries() {
  Libraries& all = libraries();
  Slots forgotten;
  const std::lock_guard lock(all.mutex);
  for (auto item = all.slots.begin(); item != all.slots.end();) {
    if (item->second->state == building) {
      ++item;
    } else {
      forgotten.insert(all.slots.extract(item++));
    }
  }
}

}  // namespace fuse
