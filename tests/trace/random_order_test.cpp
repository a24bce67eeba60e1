// Random operations on lists that share memory: compiled, interpreted and on a
// simulated GPU they must give the bits of plain loops, one operation after the
// other, or all refuse what one operation does to itself.
//
//   FUSEBOOK_FUZZ=10000     that many programs
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fusebook/compile/compile.h"
#include "fusebook/foreach/foreach.h"
#include "fusebook/foreach/foreach_map.h"
#include "fusebook/foreach/reductions.h"
#include "fusebook/support/error.h"
#include "support/step_testing.h"

using namespace fuse;
using testing::Random;

namespace {

constexpr std::size_t tensors = 2;  // of each list
constexpr std::int64_t space = 48;  // floats that all lists lie in
constexpr std::size_t steps_in_all = 3;
constexpr double infinity = std::numeric_limits<double>::infinity();

/// Where a list of floats lies, and one of per-tensor numbers.
struct FloatList {
  std::array<std::int64_t, tensors> begin{};
  std::array<std::int64_t, tensors> size{};
};
using StepList = std::array<std::size_t, tensors>;

enum class What {
  add,       // x += y
  scale,     // x *= number
  copy,      // x = y
  count,     // s += 1
  by_steps,  // x *= s
  keep,      // r = y * number
  add_kept,  // x += r
  map,       // (x, y) = (x * 2, y + x)
  largest,   // l = the largest of each tensor of y
  by_each,   // x += l
  norm,      // n = the largest size in y
  by_norm,   // x += n
};
constexpr int kinds_of_operations = 12;

struct Operation {
  What what{};
  std::size_t x = 0;
  std::size_t y = 0;
  float number = 1;
};

struct Script {
  std::vector<FloatList>
      lists;  // the first half of one shape, the rest another
  std::vector<StepList> steps;
  std::vector<Operation> operations;

  bool same_shape(std::size_t x, std::size_t y) const {
    return lists[x].size == lists[y].size;
  }
};

Script random_script(std::uint64_t seed) {
  Random random(seed);
  Script script;
  std::array<std::array<std::int64_t, tensors>, 2> shapes{};
  for (auto& shape : shapes) {
    for (auto& size : shape) size = 1 + random.below(6);
  }
  for (int k = 0; k < 6; ++k) {
    FloatList list;
    list.size = shapes[std::size_t(k / 3)];
    for (std::size_t e = 0; e < tensors; ++e) {
      // Often where another one lies.
      const bool again = !script.lists.empty() && random.chance(0.3);
      const FloatList& other = again ? random.pick(script.lists) : list;
      const std::int64_t room = space - list.size[e];
      list.begin[e] = again ? std::min(other.begin[e], room)
                            : std::int64_t(random.below(int(room)));
    }
    script.lists.push_back(list);
  }
  for (int k = 0; k < 2; ++k) {
    const auto first = std::size_t(random.below(int(steps_in_all)));
    script.steps.push_back({first, (first + 1) % steps_in_all});
  }
  const int count = 2 + random.below(8);
  for (int k = 0; k < count; ++k) {
    Operation operation;
    operation.what = What(random.below(kinds_of_operations));
    operation.x = std::size_t(random.below(6));
    const bool of_steps =
        operation.what == What::count || operation.what == What::by_steps;
    operation.y = of_steps ? std::size_t(random.below(2))
                           : operation.x / 3 * 3 + std::size_t(random.below(3));
    operation.number = float(1 + random.below(7)) / 4;
    script.operations.push_back(operation);
  }
  return script;
}

// ---- the oracle -------------------------------------------------------------

struct Memory {
  std::vector<float> floats;
  std::vector<double> steps;
};

Memory first_memory() {
  Memory memory;
  for (std::int64_t i = 0; i < space; ++i) {
    memory.floats.push_back(float(i - 20) / 3);
  }
  memory.steps = {0.5, 1.25, 2};
  return memory;
}

using Values = std::array<std::vector<float>, tensors>;
using Each = std::array<double, tensors>;

bool only_reads(What what) {
  return what == What::keep || what == What::largest || what == What::norm;
}

class Oracle {
 public:
  Oracle(const Script& script, Memory& memory)
      : script_(script), memory_(memory) {}

  // Everything in order; false for what has none, before anything is done.
  bool run() {
    std::vector<std::size_t> kept_of;
    bool any_each = false;
    bool any_norm = false;
    for (const Operation& operation : script_.operations) {
      if (operation.what == What::keep) kept_of.push_back(operation.y);
      any_each = any_each || operation.what == What::largest;
      any_norm = any_norm || operation.what == What::norm;
      const bool nothing =
          (operation.what == What::by_each && !any_each) ||
          (operation.what == What::by_norm && !any_norm) ||
          (operation.what == What::add_kept &&
           std::none_of(kept_of.begin(), kept_of.end(), [&](std::size_t k) {
             return script_.same_shape(k, operation.x);
           }));
      if (!nothing && !has_order(operation)) return false;
    }
    std::vector<Values> kept;
    kept_of.clear();
    for (const Operation& operation : script_.operations) {
      apply(operation, kept, kept_of);
    }
    return true;
  }

 private:
  static bool share(const FloatList& a, std::size_t i, const FloatList& b,
                    std::size_t j) {
    return a.begin[i] < b.begin[j] + b.size[j] &&
           b.begin[j] < a.begin[i] + a.size[i];
  }

  // Stored and read, or stored and stored, by one call.
  bool crosses(std::size_t x, std::size_t y, bool both_stored) const {
    const FloatList& a = script_.lists[x];
    const FloatList& b = script_.lists[y];
    for (std::size_t i = 0; i < tensors; ++i) {
      for (std::size_t j = 0; j < tensors; ++j) {
        if (x == y && i == j) continue;
        if (!share(a, i, b, j)) continue;
        const bool same = i == j && a.begin[i] == b.begin[j];
        if (!same || both_stored) return true;
      }
    }
    return false;
  }

  bool same_list(std::size_t x, std::size_t y) const {
    return script_.lists[x].begin == script_.lists[y].begin;
  }

  bool has_order(const Operation& op) const {
    if (op.what == What::count || only_reads(op.what)) return true;
    if (crosses(op.x, op.x, true)) return false;  // a tensor meets another
    if (op.what == What::add || op.what == What::copy) {
      return !crosses(op.x, op.y, false);
    }
    if (op.what == What::map) {
      return !same_list(op.x, op.y) && !crosses(op.y, op.y, true) &&
             !crosses(op.x, op.y, true);
    }
    return true;
  }

  Values read(std::size_t list) const {
    Values values;
    for (std::size_t e = 0; e < tensors; ++e) {
      const auto from = memory_.floats.begin() + script_.lists[list].begin[e];
      values[e].assign(from, from + script_.lists[list].size[e]);
    }
    return values;
  }
  void write(std::size_t list, const Values& values) {
    for (std::size_t e = 0; e < tensors; ++e) {
      std::copy(values[e].begin(), values[e].end(),
                memory_.floats.begin() + script_.lists[list].begin[e]);
    }
  }

  template <class F>
  static Values combine(const Values& a, const Values& b, F f) {
    Values result;
    for (std::size_t e = 0; e < tensors; ++e) {
      for (std::size_t i = 0; i < a[e].size(); ++i) {
        result[e].push_back(f(a[e][i], b[e][i]));
      }
    }
    return result;
  }

  void apply(const Operation& op, std::vector<Values>& kept,
             std::vector<std::size_t>& kept_of) {
    const auto sum = [](float a, float b) { return a + b; };
    const auto scaled = [&](float a, float) { return a * op.number; };
    switch (op.what) {
      case What::add:
        return write(op.x, combine(read(op.x), read(op.y), sum));
      case What::scale:
        return write(op.x, combine(read(op.x), read(op.x), scaled));
      case What::copy:
        return write(op.x, read(op.y));
      case What::count:
        for (const std::size_t s : script_.steps[op.y]) memory_.steps[s] += 1;
        return;
      case What::by_steps: {
        Values values = read(op.x);
        for (std::size_t e = 0; e < tensors; ++e) {
          const auto by = float(memory_.steps[script_.steps[op.y][e]]);
          for (float& value : values[e]) value *= by;
        }
        return write(op.x, values);
      }
      case What::keep:
        kept.push_back(combine(read(op.y), read(op.y), scaled));
        kept_of.push_back(op.y);
        return;
      case What::add_kept:
        for (std::size_t k = kept.size(); k-- > 0;) {
          if (!script_.same_shape(kept_of[k], op.x)) continue;
          return write(op.x, combine(read(op.x), kept[k], sum));
        }
        return;
      case What::largest: {
        const Values of = read(op.y);
        for (std::size_t e = 0; e < tensors; ++e) {
          largest_[e] = *std::max_element(of[e].begin(), of[e].end());
        }
        has_largest_ = true;
        return;
      }
      case What::by_each:
        if (has_largest_) add_numbers(op.x, largest_);
        return;
      case What::norm:
        norm_ = 0;
        for (const auto& tensor : read(op.y)) {
          for (const float x : tensor) norm_ = std::fmax(norm_, std::fabs(x));
        }
        has_norm_ = true;
        return;
      case What::by_norm:
        if (has_norm_) add_numbers(op.x, {norm_, norm_});
        return;
      case What::map: {
        const Values x = read(op.x);
        const Values y = read(op.y);
        write(op.x, combine(x, x, [](float a, float) { return a * 2; }));
        return write(op.y, combine(y, x, sum));
      }
    }
  }

  void add_numbers(std::size_t list, const Each& numbers) {
    Values values = read(list);
    for (std::size_t e = 0; e < tensors; ++e) {
      for (float& value : values[e]) value += float(numbers[e]);
    }
    write(list, values);
  }

  const Script& script_;
  Memory& memory_;
  Each largest_{};
  double norm_ = 0;
  bool has_largest_ = false;
  bool has_norm_ = false;
};

// ---- the library ------------------------------------------------------------

class Lists {
 public:
  explicit Lists(const Script& script) : script_(script) {
    const Memory memory = first_memory();
    floats_ = empty({space});
    std::copy(memory.floats.begin(), memory.floats.end(),
              floats_.data<float>());
    for (const double value : memory.steps) {
      steps_.push_back(tensor(value, DType::float64));
    }
    for (const FloatList& list : script.lists) {
      std::vector<Tensor> views;
      for (std::size_t e = 0; e < tensors; ++e) {
        views.push_back(floats_.narrow(0, list.begin[e], list.size[e]));
      }
      lists_.emplace_back(views, "list");
    }
    for (const StepList& list : script.steps) {
      step_lists_.push_back(
          TensorList::per_tensor({steps_[list[0]], steps_[list[1]]}, "steps"));
    }
  }

  void run() const {
    std::vector<TensorList> kept;
    std::vector<std::size_t> kept_of;
    std::optional<TensorList> largest;
    std::optional<Scalar> norm;
    for (const Operation& op : script_.operations) {
      if (op.what == What::largest) largest = foreach_amax(lists_[op.y]);
      if (op.what == What::norm) norm = total_norm(lists_[op.y], infinity);
      const TensorList& x = lists_[op.x];
      if (op.what == What::by_each && largest) foreach_add_(x, *largest);
      if (op.what == What::by_norm && norm) foreach_add_(x, *norm);
      apply(op, kept, kept_of);
    }
  }

  Memory memory() const {
    Memory memory;
    for (const double value : floats_.to_vector()) {
      memory.floats.push_back(float(value));
    }
    for (const Tensor& step : steps_) memory.steps.push_back(step.item());
    return memory;
  }

 private:
  void apply(const Operation& op, std::vector<TensorList>& kept,
             std::vector<std::size_t>& kept_of) const {
    const TensorList& x = lists_[op.x];
    switch (op.what) {
      case What::add:
        return foreach_add_(x, lists_[op.y]);
      case What::scale:
        return foreach_mul_(x, double(op.number));
      case What::copy:
        return foreach_copy_(x, lists_[op.y]);
      case What::count:
        return foreach_add_(step_lists_[op.y], 1.0);
      case What::by_steps:
        return foreach_mul_(x, step_lists_[op.y]);
      case What::keep:
        kept.push_back(foreach_mul(lists_[op.y], double(op.number)));
        kept_of.push_back(op.y);
        return;
      case What::add_kept:
        for (std::size_t k = kept.size(); k-- > 0;) {
          if (!script_.same_shape(kept_of[k], op.x)) continue;
          return foreach_add_(x, kept[k]);
        }
        return;
      case What::map:
        return foreach_map_(
            [](auto a, auto b) { return std::pair(a * 2, b + a); },
            into(x, lists_[op.y]));
      case What::largest:
      case What::by_each:
      case What::norm:
      case What::by_norm:
        return;
    }
  }

  const Script& script_;
  Tensor floats_;
  std::vector<Tensor> steps_;
  std::vector<TensorList> lists_;
  std::vector<TensorList> step_lists_;
};

bool same(const Memory& a, const Memory& b) {
  return std::equal(a.floats.begin(), a.floats.end(), b.floats.begin(),
                    testing::same_value<float>) &&
         std::equal(a.steps.begin(), a.steps.end(), b.steps.begin(),
                    testing::same_value<double>);
}

Backend backend_for(std::uint64_t seed) {
  if (seed % 25 == 0) return Backend::compiled;
  return seed % 5 == 1 ? Backend::simulated : Backend::interpreted;
}

int program_count() {
  const char* const wanted = std::getenv("FUSEBOOK_FUZZ");
  return wanted != nullptr ? std::max(1, int(std::strtol(wanted, nullptr, 10)))
                           : 1300;
}

struct Seen {
  int refused = 0;
  int cut = 0;
};

void check_script(std::uint64_t seed, Seen& seen) {
  CAPTURE(seed);
  const Script script = random_script(seed);
  const Lists lists(script);
  auto step = compile([&] { lists.run(); }, {.backend = backend_for(seed)});
  Memory expected = first_memory();
  Memory memory = expected;
  std::int64_t breaks = 0;
  std::int64_t compilations = 0;
  for (int call = 0; call < 3; ++call) {
    if (!Oracle(script, memory).run()) {
      ++seen.refused;
      CHECK_THROWS_AS(step(), Error);
      REQUIRE(same(lists.memory(), expected));
      CHECK(step.counters().launches == 0);
      return;
    }
    step();
    expected = memory;
    REQUIRE(same(lists.memory(), expected));
    if (call == 0) breaks = step.counters().graph_breaks;
    if (call == 0) compilations = step.counters().compilations;
    CHECK(step.counters().graph_breaks == (call + 1) * breaks);
    CHECK(step.counters().compilations == compilations);
  }
  seen.cut += breaks > 0 ? 1 : 0;
}

}  // namespace

TEST_CASE("random operations on shared memory: the bits of plain loops") {
  Seen seen;
  const int count = program_count();
  for (int seed = 0; seed < count; ++seed) {
    check_script(std::uint64_t(seed), seen);
  }
  CHECK(seen.cut > count / 8);
  CHECK(seen.refused > count / 20);
  CHECK(seen.refused < count * 3 / 4);
}
