#pragma once

#include <cstdint>
#include <source_location>
#include <span>
#include <string>
#include <vector>

#include "fusebook/ir/number_column.h"
#include "fusebook/layout/layout.h"
#include "fusebook/ops/dtype.h"
#include "fusebook/ops/ops.h"

namespace fuse {

/// How often a value changes within one launch: once, per tensor, or per
/// element.
enum class Rate : std::uint8_t { uniform, entry, element };

/// Index of a node in its program.
using ValueId = std::int32_t;

/// Where a scalar came from, for guards and their reports. `name` must outlive
/// the program (string literals do): "lr", or "betas" with index 0. If there is
/// no name, `index` distinguishes the operands of one call.
struct Origin {
  const char* name = nullptr;
  int index = -1;
  int group = -1;
  std::source_location place = {};
  /// A number known to move, such as a rate in the middle of its schedule:
  /// making it an argument from the start avoids a recompile.
  bool moves = false;
  /// A scheduler is attached to it, so it may move.
  bool scheduled = false;
};

/// `param_groups[0]["lr"]`, "operand 2 at file:line" (with the operand's index
/// in a call), or "scalar at file:line".
std::string to_string(const Origin& origin);
/// True if both are the same hyper-parameter, in any group.
bool same_parameter(const Origin& a, const Origin& b);

/// A scalar leaf of a program with its value at recording time. If several
/// groups have their own values, the origin is that of the first one.
struct ScalarLeaf : Number {
  Origin origin;
};

/// Calls visit(value, origin) for every group of a leaf.
template <class Visit>
void for_each_number(const ScalarLeaf& leaf, Visit visit) {
  if (leaf.column == nullptr) return visit(leaf.value, leaf.origin);
  Origin origin = leaf.origin;
  for (std::size_t g = 0; g < leaf.column->values.size(); ++g) {
    origin.group = leaf.column->groups->numbers[g];
    visit(leaf.column->values[g], origin);
  }
}

/// One operation or leaf. Operands `in` are values; for a `load` in[0] is the
/// slot, for `constant` and `argument` the scalar.
struct Node {
  OpCode op{};
  Rate rate{};
  DType dtype{};
  std::uint8_t arity = 0;
  std::int32_t in[4] = {-1, -1, -1, -1};
};
static_assert(sizeof(Node) == 20, "nodes are compared as bytes");

/// The kind of list a slot takes; part of a program's structure.
struct SlotInfo {
  DType dtype{};
  /// Uniform for a list of one number that every tensor reads. Such a list is
  /// read-only.
  Rate rate{};
  /// True if some tensor of the list is not in row-major order; set by
  /// `Program::slot`.
  bool strided = false;
  /// The memory the list is in; 0 is the host's, or that of a list without
  /// tensors. A program uses one memory.
  std::uint8_t memory = 0;
};
static_assert(sizeof(SlotInfo) == 4, "slots are compared as bytes");

/// The list a slot is bound to. Two views with equal `id` are the same list of
/// the same memory. All arrays hold `count` entries.
struct ListView {
  std::uint64_t id = 0;
  void* const* addresses = nullptr;
  const std::int64_t* numels = nullptr;
  std::size_t count = 0;
  const char* label = nullptr;
  /// For every tensor if some are not in row-major order; else null.
  const Layout* layouts = nullptr;
  /// A hash of addresses, sizes and strides; 0 if not computed.
  std::uint64_t content = 0;
  /// True if some element is at several positions of its tensor, as after
  /// broadcasting or expand.
  bool repeats = false;
};

/// A value that must be in memory when the launch ends.
struct Store {
  std::int32_t slot = -1;
  ValueId value = -1;
};

/// A store as recorded, before others to the same slot.
struct StoreEvent {
  std::int32_t slot = -1;
  ValueId value = -1;
  /// Number of nodes recorded before it.
  std::int32_t at = 0;
  /// Into memory that nothing else refers to: any time after `value` will do.
  bool is_result = false;
};

/// Nodes that must stay together when a program is cut.
struct NodeRange {
  std::int32_t begin = 0;
  std::int32_t end = 0;
};

/// A recorded step: list-level pointwise operations in static single assignment
/// form over slots, and the final stores. A kernel is generated from the
/// structure (nodes, slots, stores); each call binds lists and scalar values to
/// it.
class Program {
 public:
  /// The slot of a list; the same list always gets the same slot.
  std::int32_t slot(const ListView& list, SlotInfo info);
  /// True if the list has a slot.
  bool uses(std::uint64_t list_id) const { return find_slot(list_id) >= 0; }
  /// Current value of a slot: the last one stored, else a load. What is stored
  /// into blocks is not what comes back: load it in another program.
  ValueId load(std::int32_t slot, std::source_location place);
  ValueId constant(double value, const Origin& origin);
  ValueId argument(double value, const Origin& origin);
  /// A constant or an argument, which may differ between groups.
  ValueId scalar(OpCode op, const ScalarLeaf& leaf);
  /// Appends an operation. Element operands of different dtypes are cast to the
  /// type that holds them all (see promote); numbers and per-tensor values do
  /// not affect it.
  ValueId apply(OpCode op, std::span<const ValueId> in,
                std::source_location place);
  /// Appends a reduction of an element value: to one number for each tensor, or
  /// to one number of all tensors. A reduction of the same value that was
  /// appended before serves again.
  ValueId reduce(OpCode op, ValueId value, std::source_location place);
  /// Converts an element value to another dtype.
  ValueId cast(ValueId value, DType dtype, std::source_location place);
  /// Makes `value` the contents of a slot, converted to its dtype. Throws Error
  /// if an element value would be stored in a per-tensor scalar.
  void store(std::int32_t slot, ValueId value, std::source_location place);
  /// The same for memory that nothing else refers to yet.
  void store_result(std::int32_t slot, ValueId value,
                    std::source_location place);
  /// `value` with the rate and dtype of a slot, as `store` would convert it;
  /// `like` is a value over the same lists.
  ValueId convert_like(ValueId value, SlotInfo to, ValueId like,
                       std::source_location place);
  /// Starts a new operation. A program is cut only between operations.
  void begin_operation();
  /// Makes the operations from node `begin` to the end one call, which computes
  /// everything it stores before the first store.
  void end_call(std::int32_t begin);
  /// Clears everything but keeps the memory.
  void clear();

  /// For parts of a program: appends the same operation on other values, over
  /// the lists of slot `like` if none of them has a list (-1 if there is none).
  ValueId append_like(const Node& node, std::span<const ValueId> in,
                      std::int32_t slot, std::source_location place);
  /// The same for a store of a value that already has the slot's rate and
  /// dtype.
  void store_converted(std::int32_t slot, ValueId value,
                       std::source_location place);

  bool empty() const { return nodes_.empty(); }
  const Node& node(ValueId id) const { return nodes_[std::size_t(id)]; }
  /// The list domain of a value; -1 for uniform values and for what is computed
  /// from numbers in memory alone, or from reductions of whole lists.
  int domain(ValueId id) const;
  /// A slot of elements in the list domain of a value; -1 if there is none.
  std::int32_t element_slot(ValueId id) const;

  std::span<const Node> nodes() const { return nodes_; }
  std::span<const SlotInfo> slots() const { return slots_; }
  std::span<const ListView> lists() const { return lists_; }
  std::span<const Store> stores() const { return stores_; }
  /// The values that are reductions, in the order of their recording.
  std::span<const ValueId> reductions() const { return reductions_; }
  std::span<const ScalarLeaf> scalars() const { return scalars_; }
  /// First nodes of the operations; empty if the program is a single one.
  std::span<const std::int32_t> operations() const { return operations_; }
  std::span<const NodeRange> calls() const { return calls_; }
  std::span<const StoreEvent> store_events() const { return events_; }
  /// The line that recorded a value, for generated code.
  std::source_location place(ValueId id) const {
    return places_[std::size_t(id)];
  }
  /// Where the user called what recorded it, for messages; see CallPlace.
  std::source_location call_place(ValueId id) const {
    return call_places_[std::size_t(id)];
  }
  /// Position of the last read and of the first store of a slot, as numbers of
  /// nodes recorded until then; -1 for never.
  std::int32_t last_read(std::int32_t slot) const {
    return last_read_[std::size_t(slot)];
  }
  std::int32_t first_store(std::int32_t slot) const {
    return first_store_[std::size_t(slot)];
  }
  /// Where a slot is read last, and where it is stored first; line 0 if never.
  std::source_location read_place(std::int32_t slot) const;
  std::source_location store_place(std::int32_t slot) const {
    return store_places_[std::size_t(slot)];
  }

  /// Hash of the structure, and equality of it.
  std::uint64_t structure_hash() const;
  bool same_structure(const Program& other) const;

 private:
  ValueId append(const Node& node, int domain, std::source_location place);
  std::int32_t find_slot(std::uint64_t list_id) const;
  void index_slot(std::int32_t slot);
  int find_domain(int domain) const;
  int join(int a, int b);
  void refuse_elements(ValueId value, SlotInfo to,
                       std::source_location place) const;
  ValueId convert(ValueId value, SlotInfo to, int domain,
                  std::source_location place);

  std::vector<Node> nodes_;
  std::vector<int> node_domains_;
  std::vector<std::source_location> places_;
  std::vector<std::source_location> call_places_;
  std::vector<SlotInfo> slots_;
  std::vector<ListView> lists_;
  std::vector<std::int32_t> slot_index_;  // open addressing by list id
  std::vector<int> slot_domains_;
  std::vector<ValueId> current_;
  std::vector<std::int32_t> last_read_;
  std::vector<std::int32_t> first_store_;
  std::vector<std::source_location> store_places_;
  std::vector<Store> stores_;
  std::vector<std::int32_t> store_of_slot_;
  std::vector<ScalarLeaf> scalars_;
  std::vector<ValueId> reductions_;
  std::vector<std::int32_t> operations_;
  std::vector<NodeRange> calls_;
  std::vector<StoreEvent> events_;
  std::vector<int> domain_parent_;
};

}  // namespace fuse
