#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "fusebook/codegen/element_parts.h"
#include "fusebook/codegen/emit_body.h"
#include "fusebook/codegen/names.h"
#include "fusebook/ir/plan.h"
#include "fusebook/ops/reductions.h"

namespace fuse {

/// What registers hold elements of a type in.
const char* type_of(DType dtype);
/// What the prelude calls a type in memory.
const char* memory_type_of(DType dtype);
/// What is in memory as a register has it, and the other way round.
std::string from_memory(DType dtype, const std::string& text);
std::string to_memory(DType dtype, const std::string& text);

/// The values of a body as generated code names and computes them. There are
/// three stages (uniform, entry, element), each a function; what a later stage
/// reads of an earlier one is a field.
class BodyValues {
 public:
  /// A value that the element stage or a store reads of the entry stage, in a
  /// type.
  using Need = std::pair<std::int32_t, DType>;

  BodyValues(const Body& body, Target target);

  const Body& body() const { return body_; }
  std::int32_t count() const { return std::int32_t(body_.nodes.size()); }
  const BodyNode& node(std::int32_t id) const {
    return body_.nodes[std::size_t(id)];
  }
  const std::string& name(std::int32_t id) const {
    return names_.values[std::size_t(id)];
  }
  const std::string& slot_name(std::size_t slot) const {
    return names_.slots[slot];
  }
  /// True for a list in blocks.
  bool in_blocks(std::size_t slot) const {
    return body_.slots[slot].blocks.has_value();
  }
  /// True for a list whose elements lie there as they are.
  bool is_in_memory(std::size_t slot) const {
    return !in_blocks(slot) && !body_.slots[slot].draws();
  }
  /// True when elements also run several at once, in lanes.
  bool in_lanes() const { return in_lanes_; }
  /// The parts of the element stage.
  const ElementParts& parts() const { return parts_; }

  /// Uniform values that the entry stage reads.
  const std::set<std::int32_t>& uniform_needs() const { return uniform_needs_; }
  /// What is read of the entry stage.
  const std::set<Need>& entry_needs() const { return entry_needs_; }
  /// What the element stage reads of it.
  const std::set<Need>& element_needs() const { return element_needs_; }
  /// True for a number in memory, other for each tensor, that is a key of random bits
  /// and nothing else: who draws reads it, so that the entry stage remains the same for
  /// all tensors.
  bool is_key(std::int32_t id) const { return keys_.contains(id); }
  /// Leaves of the entry stage: per-tensor scalars in memory, and columns.
  std::vector<std::int32_t> inputs() const;

  /// The field of struct PerTensor that holds a value in a type.
  std::string field(const Need& need) const;
  /// A value as the code of a stage names it.
  std::string crossing(std::int32_t id, Rate stage) const;
  /// A value as an operand of an operation.
  std::string operand(std::int32_t id, const BodyNode& user) const;
  /// The call that computes a value.
  std::string expression(const BodyNode& node) const;
  /// The register of a value.
  const char* register_type(const BodyNode& node) const;
  /// The register of an element: where elements also run in lanes, one or many
  /// floats.
  const char* element_type(DType dtype) const;

  /// Calls visit(slot) for each list of elements.
  template <class Visit>
  void for_element_slots(Visit visit) const {
    for (std::size_t s = 0; s < body_.slots.size(); ++s) {
      if (body_.slots[s].rate == Rate::element) visit(s);
    }
  }
  /// Calls visit(name, node) for each value that is a reduction.
  template <class Visit>
  void for_reductions(Visit visit) const {
    for (std::int32_t id = 0; id < count(); ++id) {
      if (is_reduction(node(id).op)) visit(name(id), node(id));
    }
  }
  /// Calls visit(name, dtype) for those that are loaded, or stored.
  template <class Visit>
  void for_moved_slots(bool BodySlot::* moved, Visit visit) const {
    for_element_slots([&](std::size_t s) {
      if (!(body_.slots[s].*moved)) return;
      visit(names_.slots[s], body_.slots[s].dtype);
    });
  }
  /// Calls visit(name, node) for each list of positions, with what draws for it.
  template <class Visit>
  void for_draws(Visit visit) const {
    for_element_slots([&](std::size_t s) {
      const BodySlot& slot = body_.slots[s];
      if (slot.draws()) visit(names_.slots[s], node(slot.draw));
    });
  }
  /// Calls visit(name, slot) for each list in blocks.
  template <class Visit>
  void for_blocks(Visit visit) const {
    for_element_slots([&](std::size_t s) {
      if (in_blocks(s)) visit(names_.slots[s], body_.slots[s]);
    });
  }

 private:
  void find_keys();
  void find_needs();
  void need(std::int32_t value, const BodyNode& user);
  std::string cast_expression(const BodyNode& node) const;
  bool joins_int16(const BodyNode& node) const;
  void find_short_nans();
  bool operands_have_short_nans(const BodyNode& node) const;
  bool has_quiet_short_nans(const BodyNode& node) const;

  const Body& body_;
  BodyNames names_;
  bool in_lanes_;
  std::vector<bool> short_nans_;  // of values whose NaNs bfloat16 can hold
  ElementParts parts_;
  std::set<std::int32_t> keys_;
  std::set<std::int32_t> uniform_needs_;
  std::set<Need> entry_needs_;
  std::set<Need> element_needs_;
};

}  // namespace fuse
