#include "fusebook/ir/alias_check.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <source_location>
#include <string>
#include <vector>

#include "fusebook/support/error.h"
#include "support/testing.h"

using namespace testing;
using fuse::Error;
using fuse::OpCode;
using fuse::Program;
using fuse::Rate;
using fuse::ValueId;

namespace {

const auto here = std::source_location::current();
using Floats = MemoryList<float>;
using Doubles = MemoryList<double>;

bool always(const fuse::Origin&) { return true; }

void* at(std::uintptr_t address) { return reinterpret_cast<void*>(address); }

// to += from, which reads both lists and stores the first.
void accumulate(Program& p, const Floats& to, const Floats& from) {
  const auto target = p.slot(to.view(), to.info());
  const auto source = p.slot(from.view(), from.info());
  const std::vector<ValueId> in = {p.load(target, here), p.load(source, here)};
  p.store(target, p.apply(OpCode::add, in, here), here);
}

bool check(const Program& p) { return check_overlaps(make_plan(p, always), p); }

std::string error_of(const Program& p) {
  return message_of<Error>([&] { check(p); });
}

// Two lists a and b: a += b.
std::string pair(const std::vector<void*>& a, const std::vector<void*>& b,
                 const std::vector<std::int64_t>& sizes) {
  const Floats list_a("a", a, sizes);
  const Floats list_b("b", b, sizes);
  Program p;
  accumulate(p, list_a, list_b);
  return error_of(p);
}

}  // namespace

TEST_CASE("separate memory, and neighbours, are fine") {
  CHECK(pair({at(1000), at(1040)}, {at(1080), at(1120)}, {10, 10}) ==
        "no error");
  CHECK(pair({at(1040)}, {at(1000)}, {10}) == "no error");
}

TEST_CASE("partial overlap of stored and read memory") {
  // By one element, by one byte, inside of one another.
  for (const std::uintptr_t b : {1036UL, 1039UL, 1004UL, 997UL, 964UL}) {
    const std::string message = pair({at(1000)}, {at(b)}, {10});
    INFO(b);
    CHECK(contains(message, "a[0] is stored but overlaps b[0]"));
  }
  const std::string message =
      pair({at(1000), at(2000)}, {at(3000), at(1004)}, {10, 10});
  CHECK(contains(message, "a[0] is stored but overlaps b[1]"));
}

TEST_CASE("the same tensor at different places of two lists") {
  const std::string message =
      pair({at(1000), at(2000)}, {at(2000), at(3000)}, {10, 10});
  CHECK(contains(message, "a[1] is stored but overlaps b[0]"));
}

TEST_CASE("a tensor twice in one list") {
  SUBCASE("stored: an error") {
    const Floats list("params", {at(1000), at(2000), at(1000)}, {4, 4, 4});
    Program p;
    accumulate(p, list, list);
    const std::string message = error_of(p);
    CHECK(contains(message, "params[0]"));
    CHECK(contains(message, "params[2]"));
  }
  SUBCASE("only read: fine") {
    CHECK(pair({at(1000), at(2000)}, {at(5000), at(5000)}, {4, 4}) ==
          "no error");
  }
  SUBCASE("empty tensors have no memory to share") {
    const Floats list("empty", {at(1000), at(1000)}, {0, 0});
    Program p;
    accumulate(p, list, list);
    CHECK(error_of(p) == "no error");
    CHECK(pair({at(1000), at(1020)}, {at(1000), at(1000)}, {0, 5}) ==
          "no error");
  }
}

TEST_CASE("lists that coincide at one place") {
  const Floats a("a", {at(1000), at(2000)}, {4, 4});
  const Floats b("b", {at(1000), at(3000)}, {4, 4});
  const Floats c("c", {at(5000), at(6000)}, {4, 4});
  Program p;
  SUBCASE("read before the store: fine, and reported") {
    accumulate(p, c, b);
    accumulate(p, a, b);
    CHECK(check(p));
  }
  SUBCASE("read after the store: an error") {
    accumulate(p, a, c);
    accumulate(p, c, b);
    CHECK(contains(error_of(p), "a[0] is stored but overlaps b[0]"));
  }
  SUBCASE("both stored: an error") {
    accumulate(p, a, c);
    accumulate(p, b, c);
    CHECK(contains(error_of(p), "a[0] is stored but overlaps b[0]"));
  }
  SUBCASE("both read: fine") {
    accumulate(p, c, a);
    accumulate(p, c, b);
    CHECK_FALSE(check(p));
  }
  SUBCASE("in groups that do not meet: an error") {
    const Floats d("d", {at(7000), at(8000)}, {4, 4});
    accumulate(p, a, a);
    accumulate(p, d, b);
    CHECK(contains(error_of(p), "a[0] is stored but overlaps b[0]"));
  }
}

TEST_CASE("per-tensor scalars have memory too") {
  const Doubles steps("steps", {at(1000), at(1004)}, {1, 1});
  Program p;
  const auto slot = p.slot(steps.view(), steps.info(Rate::entry));
  const std::vector<ValueId> in = {p.load(slot, here)};
  p.store(slot, p.apply(OpCode::neg, in, here), here);
  const std::string message = error_of(p);
  CHECK(contains(message, "steps[0]"));
  CHECK(contains(message, "steps[1]"));
}

TEST_CASE("what is not bound does no harm") {
  const Floats a("a", {at(1000)}, {4});
  const Floats b("b", {at(1004)}, {4});
  Program p;
  accumulate(p, a, a);
  const auto slot = p.slot(b.view(), b.info());
  const std::vector<ValueId> in = {p.load(slot, here)};
  static_cast<void>(p.apply(OpCode::neg, in, here));  // never stored
  CHECK(error_of(p) == "no error");
}

TEST_CASE("a list without a label still has a name") {
  const Floats list(nullptr, {at(1000), at(1004)}, {4, 4});
  Program p;
  accumulate(p, list, list);
  CHECK(contains(error_of(p), "list[1]"));
}

namespace {

// Random lists in a small arena, combined at random, with a table of what
// happens to them kept beside the program.
class Arena {
 public:
  explicit Arena(std::uint64_t seed) : random_(seed) {
    const int space = 1 << (5 + random_.below(10));
    const int groups = 1 + random_.below(2);
    for (int g = 0; g < groups; ++g) add_group(g, space);
    for (int step = 0; step < 5; ++step) add_operation(step);
    link_groups();
  }

  const Program& program() const { return program_; }

  struct Tensor {
    std::uintptr_t begin;
    std::uintptr_t end;
    std::size_t list;
    std::size_t entry;
    std::string name() const {
      return std::string(1, char('A' + list)) + "[" + std::to_string(entry) +
             "]";
    }
  };

  // All pairs of tensors, by the rules as they are stated.
  bool conflict(const Tensor& x, const Tensor& y) const {
    const Use& a = uses_[x.list];
    const Use& b = uses_[y.list];
    if (x.end <= y.begin || y.end <= x.begin) return false;
    if (a.first_store < 0 && b.first_store < 0) return false;
    return !is_allowed(x, y);
  }
  // They share memory, and that is harmless although one is stored.
  bool is_allowed(const Tensor& x, const Tensor& y) const {
    const Use& a = uses_[x.list];
    const Use& b = uses_[y.list];
    if (x.begin != y.begin || x.end != y.end || x.entry != y.entry)
      return false;
    if (groups_[a.group] != groups_[b.group]) return false;
    if (a.first_store >= 0 && b.first_store >= 0) return false;
    if (a.first_store >= 0) return b.last_read <= a.first_store;
    return b.first_store >= 0 && a.last_read <= b.first_store;
  }

  std::vector<Tensor> tensors() const {
    std::vector<Tensor> all;
    for (std::size_t list = 0; list < lists_.size(); ++list) {
      if (uses_[list].last_read < 0) continue;  // not part of the launch
      const fuse::ListView view = lists_[list].view();
      for (std::size_t e = 0; e < view.count; ++e) {
        const auto begin = reinterpret_cast<std::uintptr_t>(view.addresses[e]);
        const auto end = begin + std::uintptr_t(view.numels[e]) * 4;
        if (begin != end) all.push_back({begin, end, list, e});
      }
    }
    return all;
  }

 private:
  struct Use {
    std::size_t group = 0;
    int last_read = -1;
    int first_store = -1;
  };

  void add_group(int group, int space) {
    std::vector<std::int64_t> sizes(std::size_t(random_.below(5)));
    for (std::int64_t& n : sizes) n = random_.below(7);
    groups_.push_back(std::size_t(group));
    const int lists = 2 + random_.below(3);
    for (int k = 0; k < lists; ++k) {
      std::vector<void*> addresses;
      for (std::size_t e = 0; e < sizes.size(); ++e) {
        const bool same = !lists_.empty() && random_.chance(0.1);
        const fuse::ListView last =
            same ? lists_.back().view() : fuse::ListView{};
        addresses.push_back(
            e < last.count ? last.addresses[e]
                           : at(65536 + random_.bits() % std::uint64_t(space)));
      }
      labels_.emplace_back(1, char('A' + lists_.size()));
      lists_.emplace_back(labels_.back().c_str(), addresses, sizes);
      uses_.emplace_back();
      uses_.back().group = std::size_t(group);
    }
  }

  void add_operation(int step) {
    const auto to = std::size_t(random_.below(int(lists_.size())));
    std::size_t from = 0;
    do {
      from = std::size_t(random_.below(int(lists_.size())));
    } while (uses_[from].group != uses_[to].group);
    accumulate(program_, lists_[to], lists_[from]);
    uses_[to].last_read = uses_[from].last_read = step;
    if (uses_[to].first_store < 0) uses_[to].first_store = step;
    met_.emplace_back(to, from);
  }

  // Lists share a launch's rows only when an operation joined them; give each
  // set of joined lists a number of its own.
  void link_groups() {
    groups_.clear();
    for (std::size_t list = 0; list < lists_.size(); ++list) {
      groups_.push_back(list);
      uses_[list].group = list;
    }
    for (std::size_t round = 0; round < met_.size(); ++round) {
      for (const auto& [to, from] : met_) {
        groups_[to] = groups_[from] = std::min(groups_[to], groups_[from]);
      }
    }
  }

  Random random_;
  Program program_;
  std::deque<std::string> labels_;
  std::deque<Floats> lists_;
  std::vector<Use> uses_;
  std::vector<std::size_t> groups_;
  std::vector<std::pair<std::size_t, std::size_t>> met_;
};

}  // namespace

TEST_CASE("random memory: the same verdict as comparing all pairs") {
  int refused = 0;
  int shared = 0;
  for (std::uint64_t seed = 0; seed < 20000; ++seed) {
    const Arena arena(seed);
    const auto tensors = arena.tensors();
    bool any_allowed = false;
    std::vector<std::string> conflicts;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      for (std::size_t k = i + 1; k < tensors.size(); ++k) {
        const auto& x = tensors[i];
        const auto& y = tensors[k];
        if (arena.conflict(x, y)) {
          conflicts.push_back(x.name() + " is stored but overlaps " + y.name());
          conflicts.push_back(y.name() + " is stored but overlaps " + x.name());
        }
        any_allowed = any_allowed || arena.is_allowed(x, y);
      }
    }
    INFO("seed " << seed);
    bool coincident = false;
    const std::string message =
        message_of<Error>([&] { coincident = check(arena.program()); });
    if (conflicts.empty()) {
      REQUIRE(message == "no error");
      REQUIRE(coincident == any_allowed);
      shared += int(coincident);
    } else {
      ++refused;
      // The tensors that are named really are in conflict.
      REQUIRE(std::any_of(
          conflicts.begin(), conflicts.end(),
          [&](const std::string& pair) { return contains(message, pair); }));
    }
  }
  CHECK(refused > 5000);
  CHECK(refused < 15000);
  CHECK(shared > 200);
}
