#include "fusebook/runtime/moved_lists.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <source_location>
#include <utility>
#include <vector>

#include "support/testing.h"

using fuse::ListView;
using fuse::MovedLists;
using fuse::Program;
using fuse::Rate;
using testing::Random;

namespace {

using Addresses = std::vector<std::uintptr_t>;

// Lists of bytes somewhere, as a program knows them; nobody follows the
// addresses.
struct Memory {
  std::vector<bool> stored;
  std::vector<std::vector<std::int64_t>> sizes;
  std::vector<Addresses> now;
  std::vector<std::vector<void*>> before;
  std::vector<std::vector<void*>> addresses;
  std::uint64_t next_id = 1;

  void add(bool is_stored, std::vector<std::int64_t> bytes, Addresses at) {
    stored.push_back(is_stored);
    sizes.push_back(std::move(bytes));
    now.push_back(std::move(at));
  }
  static std::vector<void*> pointers(const Addresses& from) {
    std::vector<void*> to;
    for (const std::uintptr_t each : from) {
      to.push_back(reinterpret_cast<void*>(each * 4));
    }
    return to;
  }
  // Elements of four bytes.
  Program program() {
    Program p;
    addresses.clear();
    for (const Addresses& each : now) addresses.push_back(pointers(each));
    for (std::size_t l = 0; l < now.size(); ++l) {
      const ListView view{.id = next_id++,
                          .addresses = addresses[l].data(),
                          .numels = sizes[l].data(),
                          .count = sizes[l].size()};
      p.slot(view, {fuse::DType::float32, Rate::element});
    }
    return p;
  }
  std::vector<MovedLists::List> lists() const {
    std::vector<MovedLists::List> all;
    for (std::size_t l = 0; l < now.size(); ++l) {
      all.push_back({l, stored[l], 4});
    }
    return all;
  }
  void remember() {
    before.clear();
    for (const Addresses& each : now) before.push_back(pointers(each));
  }
  // All lists may have moved.
  bool are_apart(MovedLists& moved) {
    const Program p = program();
    std::vector<MovedLists::Moved> all;
    for (std::size_t l = 0; l < now.size(); ++l) {
      all.push_back({l, before[l].data()});
    }
    return moved.are_apart(p, all);
  }
  // The same, element by element.
  bool is_apart(std::size_t space) const {
    std::vector<int> stores(space, 0);
    std::vector<int> reads(space, 0);
    for (std::size_t l = 0; l < now.size(); ++l) {
      for (std::size_t e = 0; e < now[l].size(); ++e) {
        for (std::int64_t i = 0; i < sizes[l][e]; ++i) {
          ++(stored[l] ? stores : reads)[now[l][e] + std::size_t(i)];
        }
      }
    }
    for (std::size_t i = 0; i < space; ++i) {
      if (stores[i] > 1 || (stores[i] == 1 && reads[i] > 0)) return false;
    }
    return true;
  }
};

// params and states are stored, gradients are read.
Memory three_lists() {
  Memory memory;
  memory.add(true, {10, 10}, {100, 110});
  memory.add(true, {10, 10}, {200, 210});
  memory.add(false, {10, 10}, {300, 310});
  memory.remember();
  return memory;
}

}  // namespace

TEST_CASE("stored tensors that move are compared with what is near") {
  Memory memory = three_lists();
  MovedLists moved;
  moved.assign(memory.lists());
  const auto put = [&](std::size_t list, std::size_t e, std::uintptr_t to) {
    memory.now[list][e] = to;
    const bool apart = memory.are_apart(moved);
    if (apart) {
      memory.remember();
    } else {
      memory.now = three_lists().now;
      memory.remember();
    }
    return apart;
  };
  CHECK(put(0, 1, 120));        // alone
  CHECK(put(0, 1, 110));        // and back
  CHECK(put(0, 0, 190));        // right before a state
  CHECK_FALSE(put(0, 0, 191));  // one byte of it
  CHECK_FALSE(put(0, 0, 105));  // another parameter
  CHECK_FALSE(put(0, 1, 319));  // a gradient
  CHECK_FALSE(put(2, 1, 219));  // a gradient in a state
  CHECK(put(2, 1, 305));        // gradients may share memory
  CHECK(put(1, 0, 1 << 20));    // where nothing is
  CHECK_FALSE(put(0, 0, (1 << 20) + 9));
}

TEST_CASE("a tensor may come to where another one was") {
  Memory memory = three_lists();
  MovedLists moved;
  moved.assign(memory.lists());
  std::swap(memory.now[0], memory.now[1]);
  CHECK(memory.are_apart(moved));
  memory.remember();
  std::swap(memory.now[0], memory.now[2]);
  CHECK(memory.are_apart(moved));
  memory.remember();
  memory.now[1] = memory.now[0];
  CHECK_FALSE(memory.are_apart(moved));
}

// What has stayed for long is known in another way than what moves, and both may
// change.
TEST_CASE("random moves of any lists, element by element") {
  int apart = 0;
  int together = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Random random(seed);
    const int lists = 1 + random.below(4);
    const std::size_t space = std::size_t(256) << random.below(4);
    Memory memory;
    std::uintptr_t next = 0;
    for (int l = 0; l < lists; ++l) {
      std::vector<std::int64_t> sizes(std::size_t(1 + random.below(5)));
      Addresses at;
      for (std::int64_t& size : sizes) {
        size = random.below(12);
        at.push_back(next);
        next += std::uintptr_t(size);
      }
      memory.add(random.chance(0.6), std::move(sizes), std::move(at));
    }
    REQUIRE(next + 12 < space);
    memory.remember();
    MovedLists moved;
    moved.assign(memory.lists());
    int movable = 1 + random.below(lists);
    for (int i = 0; i < 60; ++i) {
      if (i % 20 == 19) movable = 1 + random.below(lists);
      const auto known = memory.now;
      for (int k = random.below(4); k > 0; --k) {
        const auto l = std::size_t(random.below(movable));
        const auto e = std::size_t(random.below(int(memory.now[l].size())));
        memory.now[l][e] = random.bits() % (space - 12);
      }
      INFO("seed " << seed << " move " << i);
      const bool expected = memory.is_apart(space);
      REQUIRE(memory.are_apart(moved) == expected);
      ++(expected ? apart : together);
      if (!expected) memory.now = known;
      memory.remember();
    }
  }
  CHECK(apart > 4000);
  CHECK(together > 1000);
}
