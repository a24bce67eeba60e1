// A fuzz target over the construction of programs: any bytes become calls of
// Program. What the program does is planned, generated as source, bound and
// interpreted; its memory must then hold the bits that plain scalar code gives,
// node by node. An Error is an answer too; anything else ends the fuzzer.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <map>
#include <source_location>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fusebook/codegen/emit_kernel.h"
#include "fusebook/codegen/print_plan.h"
#include "fusebook/cpu/cpu_kernel.h"
#include "fusebook/ir/plan.h"
#include "fusebook/ir/program.h"
#include "fusebook/ops/element.h"
#include "fusebook/ops/reductions.h"
#include "fusebook/runtime/kernel.h"
#include "fusebook/support/error.h"
#include "support/reduced.h"
#include "support/reduction_order.h"
#include "support/reference.h"
#include "support/testing.h"

namespace {

using fuse::DType;
using fuse::Node;
using fuse::OpCode;
using fuse::Program;
using fuse::Rate;
using fuse::ValueId;

const auto here = std::source_location::current();

[[noreturn]] void fail(const Program& program, const std::string& what) {
  std::fprintf(stderr, "program_fuzz: %s\n%s\n", what.c_str(),
               listing(program).c_str());
  std::abort();
}

/// Reads the input; beyond its end there are zeros.
class Bytes {
 public:
  explicit Bytes(std::span<const std::uint8_t> left) : left_(left) {}
  bool empty() const { return left_.empty(); }
  int next() {
    if (left_.empty()) return 0;
    const int byte = left_.front();
    left_ = left_.subspan(1);
    return byte;
  }
  int below(std::size_t n) { return int(std::size_t(next()) % n); }
  double number() {
    const auto& special = testing::special_values<double>();
    const int kind = below(4);
    if (kind == 0) return special[std::size_t(below(special.size()))];
    if (kind == 1) return double(next()) - 128;
    std::uint64_t bits = 0;
    for (int i = 0; i < 8; ++i) bits = bits << 8 | unsigned(next());
    return kind == 2 ? std::bit_cast<double>(bits) : double(float(next())) / 64;
  }

 private:
  std::span<const std::uint8_t> left_;
};

/// Lists of one world have tensors of the same sizes and may meet.
const std::array<std::vector<std::int64_t>, 2> world_sizes = {
    {{3, 0, 17, 1}, {513, 2}}};
constexpr int no_world = -1;

/// Element `i` of memory of a dtype.
double read(DType dtype, const void* memory, std::size_t i) {
  if (dtype == DType::float32)
    return double(static_cast<const float*>(memory)[i]);
  if (dtype == DType::float64) return static_cast<const double*>(memory)[i];
  return reduced::decode(dtype, static_cast<const std::uint16_t*>(memory)[i]);
}

/// `value` is a number of the dtype.
void write(DType dtype, void* memory, std::size_t i, double value) {
  fuse::with_type(dtype, [&](auto type) {
    using T = decltype(type);
    static_cast<T*>(memory)[i] = T(value);
  });
}

struct List {
  int world = 0;
  fuse::SlotInfo info;
  std::vector<std::vector<double>> before;  // exact in the list's dtype
  std::vector<std::vector<double>> memory;  // as many bytes as any type needs
  std::vector<void*> addresses;
  std::vector<std::int64_t> numels;
  std::uint64_t id = testing::next_list_id();

  fuse::ListView view() const {
    return {id, addresses.data(), numels.data(), addresses.size(), "list"};
  }
  double now(std::size_t tensor, std::size_t i) const {
    return read(info.dtype, memory[tensor].data(), i);
  }
};

List make_list(int world, fuse::SlotInfo info, testing::Random& random) {
  List list;
  list.world = world;
  list.info = info;
  list.numels = world_sizes[std::size_t(world)];
  for (std::int64_t& numel : list.numels) {
    if (info.rate == Rate::entry) numel = 1;
    std::vector<double> values;
    for (std::int64_t i = 0; i < numel; ++i) {
      values.push_back(reduced::any_value(info.dtype, random));
    }
    list.memory.emplace_back(values.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      write(info.dtype, list.memory.back().data(), i, values[i]);
    }
    list.before.push_back(std::move(values));
  }
  for (auto& tensor : list.memory) list.addresses.push_back(tensor.data());
  return list;
}

/// Values that a program has so far, and the world each belongs to.
struct Known {
  ValueId id = -1;
  int world = no_world;
};

/// Turns bytes into calls.
class Author {
 public:
  explicit Author(std::span<const std::uint8_t> bytes) : bytes_(bytes) {
    testing::Random random(std::uint64_t(bytes_.next()));
    const int lists = 1 + bytes_.below(6);
    for (int i = 0; i < lists; ++i) {
      const int kind = bytes_.next();
      lists_.push_back(
          make_list(kind >> 2 & 1,
                    {DType((kind & 1) | (kind >> 2 & 2)),
                     (kind & 2) != 0 ? Rate::entry : Rate::element},
                    random));
    }
    script_ = bytes_;
  }

  /// Writes the program; the same calls every time.
  Program write() {
    bytes_ = script_;
    known_.clear();
    Program program;
    for (int steps = 0; !bytes_.empty() && steps < 200; ++steps) add(program);
    return program;
  }
  const std::vector<List>& lists() const { return lists_; }
  /// Which list a slot of the program stands for.
  const List& list_of(const Program& program, std::int32_t slot) const {
    const std::uint64_t id = program.lists()[std::size_t(slot)].id;
    return *std::find_if(lists_.begin(), lists_.end(),
                         [&](const List& list) { return list.id == id; });
  }

 private:
  void add(Program& program) {
    switch (bytes_.below(8)) {
      case 0:
        return add_load(program);
      case 1:
        return add_number(program);
      case 2:
        return add_store(program);
      case 3:
        return add_cast(program);
      case 4:
        return add_reduction(program);
      default:
        return add_operation(program);
    }
  }

  const List& any_list() {
    return lists_[std::size_t(bytes_.below(lists_.size()))];
  }
  fuse::Origin any_origin() {
    static constexpr std::array<const char*, 3> names = {nullptr, "lr", "eps"};
    return {names[std::size_t(bytes_.below(3))], bytes_.below(3) - 1,
            bytes_.below(3) - 1, here};
  }

  void add_load(Program& program) {
    const List& list = any_list();
    const auto slot = program.slot(list.view(), list.info);
    known_.push_back({program.load(slot, here), list.world});
  }

  void add_number(Program& program) {
    const double value = bytes_.number();
    const fuse::Origin origin = any_origin();
    known_.push_back({bytes_.below(2) == 0 ? program.constant(value, origin)
                                           : program.argument(value, origin),
                      no_world});
  }

  // One of the known values that may meet `world`.
  Known pick(int world) {
    const Known known = known_[std::size_t(bytes_.below(known_.size()))];
    const bool may_meet =
        world == no_world || known.world == no_world || known.world == world;
    return may_meet ? known : known_.front();
  }

  void add_store(Program& program) {
    if (known_.empty()) return;
    const List& list = any_list();
    const Known value = pick(list.world);
    if (value.world != no_world && value.world != list.world) return;
    program.store(program.slot(list.view(), list.info), value.id, here);
  }

  void add_cast(Program& program) {
    if (known_.empty()) return;
    const Known known = known_[std::size_t(bytes_.below(known_.size()))];
    if (program.node(known.id).rate != Rate::element) return;
    const auto dtype = DType(bytes_.below(fuse::dtype_count));
    known_.push_back({program.cast(known.id, dtype, here), known.world});
  }

  void add_reduction(Program& program) {
    if (known_.empty()) return;
    const Known known = known_[std::size_t(bytes_.below(known_.size()))];
    if (program.node(known.id).rate != Rate::element) return;
    const auto op = OpCode(int(OpCode::sum) + bytes_.below(6));
    known_.push_back({program.reduce(op, known.id, here),
                      fuse::is_total(op) ? no_world : known.world});
  }

  void add_operation(Program& program) {
    if (known_.empty()) return;
    const auto op = OpCode(bytes_.below(std::size_t(fuse::op_count)));
    std::array<ValueId, 4> in = {};
    int world = no_world;
    for (int k = 0; k < fuse::info(op).arity; ++k) {
      const Known operand = pick(world);
      if (world != no_world && operand.world != no_world &&
          operand.world != world) {
        return;
      }
      world = std::max(world, operand.world);
      in[std::size_t(k)] = operand.id;
    }
    const auto operands = std::span(in).first(std::size_t(info(op).arity));
    known_.push_back({program.apply(op, operands, here), world});
  }

  Bytes bytes_;
  Bytes script_{{}};
  std::vector<List> lists_;
  std::vector<Known> known_;
};

/// What every node of a program is worth for one element, by scalar code.
class Reference {
 public:
  Reference(const Author& author, const Program& program)
      : author_(author), program_(program), worlds_(program.nodes().size()) {
    for (std::size_t n = 0; n < worlds_.size(); ++n) worlds_[n] = world_of(n);
    for (const ValueId id : program.reductions()) reduce(id);
  }

  /// With `at_element` false, values of elements are left out.
  std::vector<double> values(int world, std::size_t tensor, std::size_t i,
                             bool at_element) const {
    std::vector<double> all(program_.nodes().size(), 0.0);
    for (std::size_t n = 0; n < all.size(); ++n) {
      const Node& node = program_.nodes()[n];
      if (worlds_[n] != no_world && worlds_[n] != world) continue;
      if (node.rate == Rate::element && !at_element) continue;
      all[n] = fuse::is_reduction(node.op) ? result_of(ValueId(n), tensor)
                                           : value(node, all, tensor, i);
    }
    return all;
  }

 private:
  // Reductions of other values are known before.
  void reduce(ValueId id) {
    const Node& node = program_.node(id);
    const auto in = std::size_t(node.in[0]);
    const OpCode op = fuse::per_tensor(node.op);
    const bool largest = op == OpCode::amax;
    const auto join = largest ? reduction_order::larger : reduction_order::add;
    const double first = largest ? -std::numeric_limits<double>::infinity() : 0;
    const int world = reduced_world(node);
    const auto& sizes = world_sizes[std::size_t(world)];
    std::vector<double> results;
    for (std::size_t t = 0; t < sizes.size(); ++t) {
      std::vector<double> terms;
      for (std::int64_t i = 0; i < sizes[t]; ++i) {
        const double x = values(world, t, std::size_t(i), true)[in];
        terms.push_back(op == OpCode::sum_of_squares ? x * x : x);
      }
      results.push_back(reduction_order::join_elements(terms, join, first));
    }
    if (fuse::is_total(node.op)) {
      results = {reduction_order::join_numbers(results, join, first)};
    }
    reduced_[id] = std::move(results);
  }

  // A number that was stored into a list has no world of its own.
  int reduced_world(const Node& reduction) const {
    const auto slot = program_.element_slot(reduction.in[0]);
    return author_.list_of(program_, slot).world;
  }

  int world_of(std::size_t n) const {
    const Node& node = program_.nodes()[n];
    if (fuse::is_total(node.op)) return no_world;
    if (fuse::is_reduction(node.op)) return reduced_world(node);
    if (node.op == OpCode::load) {
      return author_.list_of(program_, node.in[0]).world;
    }
    int world = no_world;
    for (int k = 0; k < node.arity; ++k) {
      world = std::max(world, worlds_[std::size_t(node.in[k])]);
    }
    return world;
  }

  double result_of(ValueId id, std::size_t tensor) const {
    const auto known = reduced_.find(id);
    if (known == reduced_.end()) return 0;  // nobody asks for it yet
    return known->second[known->second.size() == 1 ? 0 : tensor];
  }

  double value(const Node& node, const std::vector<double>& all,
               std::size_t tensor, std::size_t i) const {
    if (node.op == OpCode::load) {
      const List& list = author_.list_of(program_, node.in[0]);
      return list.before[tensor][list.info.rate == Rate::entry ? 0 : i];
    }
    if (node.op == OpCode::constant || node.op == OpCode::argument) {
      return program_.scalars()[std::size_t(node.in[0])].value;
    }
    std::array<double, 4> in = {};
    for (int k = 0; k < node.arity; ++k) {
      in[std::size_t(k)] = all[std::size_t(node.in[k])];
    }
    if (node.op == OpCode::cast) return reduced::round(node.dtype, in[0]);
    return reference::apply(node.op, node.dtype, in);
  }

  const Author& author_;
  const Program& program_;
  std::vector<int> worlds_;
  std::map<ValueId, std::vector<double>> reduced_;
};

bool same(DType dtype, double a, double b) {
  return dtype == DType::float32 ? testing::same_value(float(a), float(b))
                                 : testing::same_value(a, b);
}

// One list after the launch against what its store is worth, or against what
// it held before.
void check_list(const Program& program, const Reference& reference,
                const List& list, ValueId stored) {
  for (std::size_t t = 0; t < list.before.size(); ++t) {
    for (std::size_t i = 0; i < list.before[t].size(); ++i) {
      double wanted = list.before[t][i];
      if (stored >= 0) {
        const bool at_element = list.info.rate == Rate::element;
        wanted =
            reference.values(list.world, t, i, at_element)[std::size_t(stored)];
      }
      if (same(list.info.dtype, wanted, list.now(t, i))) continue;
      fail(program, "element " + std::to_string(i) + " of tensor " +
                        std::to_string(t) + " is " +
                        std::to_string(list.now(t, i)) + ", not " +
                        std::to_string(wanted));
    }
  }
}

void check_memory(const Author& author, const Program& program) {
  const Reference reference(author, program);
  for (const List& list : author.lists()) {
    ValueId stored = -1;
    for (const fuse::Store& store : program.stores()) {
      if (&author.list_of(program, store.slot) == &list) stored = store.value;
    }
    check_list(program, reference, list, stored);
  }
}

void check_structure(const Program& first, const Program& second) {
  if (!first.same_structure(second) ||
      first.structure_hash() != second.structure_hash()) {
    fail(first, "the same calls gave another structure");
  }
}

void run(Author& author, bool bake, int threads) {
  const Program program = author.write();
  check_structure(program, author.write());
  const auto may_bake = [bake](const fuse::Origin& origin) {
    return bake || origin.name == nullptr;
  };
  const fuse::Plan plan = make_plan(program, may_bake);
  if (!plan.matches(program)) fail(program, "a plan for another program");
  const std::string source = generate_cpu_source(plan);
  if (source != generate_cpu_source(plan)) fail(program, "unsteady source");
  fuse::Table table;
  const auto kernel = fuse::make_interpreter(plan);
  bind_table(table, *kernel, plan, program, threads);
  kernel->launch(table);
  check_memory(author, program);
}

struct Counts {
  long inputs = 0;
  long checked = 0;
  long refused = 0;
};
Counts counts;

// A fuzzer that only finds errors has checked nothing.
void report() {
  std::fprintf(stderr, "program_fuzz: %ld inputs, %ld checked, %ld refused\n",
               counts.inputs, counts.checked, counts.refused);
  if (counts.inputs >= 1000 && counts.checked * 4 < counts.inputs) _Exit(1);
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming)
extern "C" int LLVMFuzzerInitialize(int*, char***) {
  std::atexit(report);
  return 0;
}

// NOLINTNEXTLINE(readability-identifier-naming)
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  ++counts.inputs;
  if (size < 2) return 0;
  try {
    Author author({data + 2, size - 2});
    run(author, (data[0] & 1) != 0, 1 + data[1] % 3);
    ++counts.checked;
  } catch (const fuse::Error&) {
    ++counts.refused;
  }
  return 0;
}
