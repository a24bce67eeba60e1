#include "fusebook/codegen/body_values.h"

#include <algorithm>

#include "fusebook/ops/reductions.h"
#include "fusebook/support/join.h"

namespace fuse {
namespace {

// `round_bfloat16(text)` and the like.
std::string converted(const char* how, DType dtype, const std::string& text) {
  return std::string(how) + name_of(dtype) + "(" + text + ")";
}

// `text` rounded to a type, in the register that holds such values.
std::string rounded(DType dtype, const std::string& text) {
  return is_reduced(dtype) ? converted("round_", dtype, text) : text;
}

// Whether the lower half of each NaN among the results is that of an operand, or zero.
bool passes_nans_on(const BodyNode& node) {
  if (node.dtype != DType::bfloat16 && node.dtype != DType::float32)
    return false;
  return node.op != OpCode::draw && !calls_library(node.op) &&
         !works_on_bits(node.op);
}

// The type an operand has for its user: that the user computes in. A cast takes
// what there is.
DType operand_type(const BodyNode& from, const BodyNode& user) {
  if (user.op == OpCode::draw) return DType::float64;  // key and stream
  if (user.op != OpCode::cast) return compute_type(user.dtype);
  return from.rate == Rate::element ? compute_type(from.dtype) : DType::float64;
}

// Halves of a float are numbers of 16 bits, and need no rounding to their type.
bool is_half_of_that_type(const BodyNode& from, const BodyNode& cast) {
  if (from.rate != Rate::element || from.dtype != DType::float32) return false;
  const bool upper =
      from.op == OpCode::high_half || from.op == OpCode::stochastic_half;
  return (upper && cast.dtype == DType::bfloat16) ||
         (from.op == OpCode::low_half && cast.dtype == DType::int16);
}

bool is_leaf(const BodyNode& node) {
  return node.op == OpCode::load || node.op == OpCode::argument;
}

}  // namespace

const char* type_of(DType dtype) {
  return dtype == DType::float64 ? "double" : "float";
}

const char* memory_type_of(DType dtype) {
  if (!is_reduced(dtype)) return type_of(dtype);
  if (dtype == DType::int16) return "i16";
  return dtype == DType::float16 ? "f16" : "bf16";
}

std::string from_memory(DType dtype, const std::string& text) {
  return is_reduced(dtype) ? converted("from_", dtype, text) : text;
}

std::string to_memory(DType dtype, const std::string& text) {
  return is_reduced(dtype) ? converted("to_", dtype, text) : text;
}

BodyValues::BodyValues(const Body& body, Target target)
    : body_(body),
      names_(name_body(body)),
      in_lanes_(target == Target::cpu && runs_in_lanes(body)),
      parts_(in_lanes_ ? ElementParts(body) : ElementParts()) {
  if (in_lanes_) find_short_nans();
  find_keys();
  find_needs();
}

// A number of an earlier stage that is a NaN gets a lower half of zeros where it becomes
// lanes: see Floats(float). What is rounded to bfloat16, or loaded as such, has one.
void BodyValues::find_short_nans() {
  for (const BodyNode& n : body_.nodes) {
    const bool leaf = n.arity == 0;
    const bool element = n.rate == Rate::element;
    short_nans_.push_back(
        !element || n.dtype == DType::bfloat16 ||
        (!leaf && passes_nans_on(n) && operands_have_short_nans(n)));
  }
}

bool BodyValues::operands_have_short_nans(const BodyNode& n) const {
  bool all = true;
  for (int k = 0; k < n.arity; ++k) {
    all = all && short_nans_[std::size_t(n.in[k])];
  }
  return all;
}

// A result of arithmetic is a quiet NaN if it is one at all.
bool BodyValues::has_quiet_short_nans(const BodyNode& n) const {
  return in_lanes_ && n.rate == Rate::element && is_arithmetic(n.op) &&
         operands_have_short_nans(n);
}

void BodyValues::find_keys() {
  std::set<std::int32_t> others;
  for (const BodyNode& n : body_.nodes) {
    for (int k = 0; k < n.arity; ++k) {
      (n.op == OpCode::draw && k == 1 ? keys_ : others).insert(n.in[k]);
    }
  }
  for (const Store& store : body_.stores) others.insert(store.value);
  std::erase_if(keys_, [&](std::int32_t id) {
    return node(id).op != OpCode::load || others.contains(id);
  });
}

// Which values cross from a stage into a later one, and as what type.
void BodyValues::find_needs() {
  for (std::int32_t id = 0; id < count(); ++id) {
    for (int k = 0; k < node(id).arity; ++k) need(node(id).in[k], node(id));
  }
  entry_needs_ = element_needs_;
  for (const Store& store : body_.stores) {
    if (is_reduction(node(store.value).op)) continue;
    const bool entry = body_.slots[store.slot].rate == Rate::entry;
    if (entry) entry_needs_.insert({store.value, DType::float64});
  }
  for (const Need& each : entry_needs_) {
    if (node(each.first).rate == Rate::uniform) {
      uniform_needs_.insert(each.first);
    }
  }
}

void BodyValues::need(std::int32_t value, const BodyNode& user) {
  if (node(value).op == OpCode::constant || is_key(value)) return;
  const Rate rate = node(value).rate;
  if (user.rate == Rate::element && rate != Rate::element) {
    element_needs_.insert({value, operand_type(node(value), user)});
  }
  if (user.rate == Rate::entry && rate == Rate::uniform) {
    uniform_needs_.insert(value);
  }
}

std::vector<std::int32_t> BodyValues::inputs() const {
  std::vector<std::int32_t> ids;
  for (std::int32_t id = 0; id < count(); ++id) {
    if (!is_leaf(node(id)) || is_key(id)) continue;
    if (node(id).rate == Rate::entry) ids.push_back(id);
  }
  return ids;
}

std::string BodyValues::field(const Need& need) const {
  const auto [value, dtype] = need;
  const DType other = dtype == DType::float32 ? DType::float64 : DType::float32;
  const bool both = entry_needs_.contains({value, other});
  return both && dtype == DType::float32 ? names_.rounded[value] : name(value);
}

std::string BodyValues::crossing(std::int32_t id, Rate stage) const {
  const BodyNode& n = node(id);
  if (n.rate == Rate::uniform && stage != Rate::uniform) {
    return "u." + name(id);
  }
  return is_leaf(n) && n.rate == Rate::entry ? "in." + name(id) : name(id);
}

std::string BodyValues::operand(std::int32_t id, const BodyNode& user) const {
  const BodyNode& n = node(id);
  const DType type = operand_type(n, user);
  if (n.op == OpCode::constant) return constant_text(n.value, type);
  if (user.rate == n.rate) return crossing(id, n.rate);
  if (user.rate == Rate::element) return "t." + field({id, type});
  return "u." + name(id);
}

// Then the lower half needs no cutting.
bool BodyValues::joins_int16(const BodyNode& n) const {
  if (n.op != OpCode::join_halves || n.rate != Rate::element) return false;
  const BodyNode& low = node(n.in[1]);
  const bool cast = low.op == OpCode::cast && low.dtype == DType::float32;
  const BodyNode& from = cast ? node(low.in[0]) : low;
  return from.rate == Rate::element && from.dtype == DType::int16;
}

std::string BodyValues::expression(const BodyNode& n) const {
  if (n.op == OpCode::cast) return cast_expression(n);
  if (n.op == OpCode::draw) return name(n.in[0]);  // drawn when it was loaded
  std::string operands;
  for (int k = 0; k < n.arity; ++k) add_item(operands, operand(n.in[k], n));
  const std::string call = joins_int16(n)
                               ? "math::join_int16(" + operands + ")"
                               : std::string(name_of(n.op)) + "<" +
                                     register_type(n) + ">(" + operands + ")";
  const bool quiet = n.dtype == DType::bfloat16 && has_quiet_short_nans(n);
  return quiet ? converted("round_result_", n.dtype, call)
               : rounded(n.dtype, call);
}

// Per-tensor values stay doubles, but are rounded as their storage is.
std::string BodyValues::cast_expression(const BodyNode& n) const {
  std::string value = operand(n.in[0], n);
  const BodyNode& from = node(n.in[0]);
  if (is_half_of_that_type(from, n)) return value;
  if (n.dtype == DType::bfloat16 && from.dtype == DType::float32 &&
      has_quiet_short_nans(from)) {
    return converted("round_result_", n.dtype, value);
  }
  if (is_reduced(n.dtype)) return rounded(n.dtype, value);
  return std::string(register_type(n)) + "(" + value + ")";
}

const char* BodyValues::register_type(const BodyNode& n) const {
  return n.rate == Rate::element ? element_type(n.dtype) : type_of(n.dtype);
}

const char* BodyValues::element_type(DType dtype) const {
  return in_lanes_ ? "Float" : type_of(dtype);
}

}  // namespace fuse
