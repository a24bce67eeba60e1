#include "fusebook/ir/program.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <sstream>

#include "fusebook/ops/reductions.h"
#include "fusebook/support/call_place.h"
#include "fusebook/support/error.h"
#include "fusebook/support/same_bytes.h"
#include "fusebook/support/source_place.h"

namespace fuse {
namespace {

std::uint64_t mix(std::uint64_t hash, std::uint64_t word) {
  hash = (hash ^ word) * 0x9e3779b97f4a7c15ULL;
  return hash ^ (hash >> 29);
}

template <class T>
std::uint64_t hash_words(std::uint64_t hash, std::span<const T> items) {
  static_assert(sizeof(T) % 2 == 0);
  const auto* bytes = reinterpret_cast<const unsigned char*>(items.data());
  std::size_t rest = items.size_bytes();
  for (; rest >= 8; rest -= 8, bytes += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes, 8);
    hash = mix(hash, word);
  }
  std::uint64_t tail = rest;
  if (rest > 0) {  // an empty span has no address
    std::memcpy(reinterpret_cast<unsigned char*>(&tail) + 1, bytes,
                std::min<std::size_t>(rest, 7));
  }
  return mix(hash, tail);
}

}  // namespace

std::string to_string(const Origin& origin) {
  std::ostringstream text;
  if (origin.name == nullptr) {
    text << (origin.index < 0 ? "scalar"
                              : fmt::format("operand {}", origin.index))
         << " at " << at(origin.place);
    return text.str();
  }
  text << "param_groups[" << std::max(origin.group, 0) << "][\"" << origin.name
       << "\"]";
  if (origin.index >= 0) text << "[" << origin.index << "]";
  return text.str();
}

bool same_parameter(const Origin& a, const Origin& b) {
  if ((a.name == nullptr) != (b.name == nullptr)) return false;
  if (a.index != b.index) return false;
  if (a.name != nullptr) return std::strcmp(a.name, b.name) == 0;
  return a.place.line() == b.place.line() &&
         a.place.column() == b.place.column() &&
         std::strcmp(a.place.file_name(), b.place.file_name()) == 0;
}

int Program::find_domain(int domain) const {
  while (domain_parent_[domain] != domain) {
    domain = domain_parent_[domain];
  }
  return domain;
}

int Program::join(int a, int b) {
  if (a < 0) return b;
  if (b < 0) return a;
  a = find_domain(a);
  b = find_domain(b);
  domain_parent_[std::max(a, b)] = std::min(a, b);
  return std::min(a, b);
}

int Program::domain(ValueId id) const {
  const int domain = node_domains_[id];
  return domain < 0 ? domain : find_domain(domain);
}

std::int32_t Program::find_slot(std::uint64_t list_id) const {
  if (slot_index_.empty()) return -1;
  const std::size_t mask = slot_index_.size() - 1;
  for (std::size_t at = mix(1, list_id) & mask;; at = (at + 1) & mask) {
    const std::int32_t slot = slot_index_[at];
    if (slot < 0 || lists_[slot].id == list_id) return slot;
  }
}

void Program::index_slot(std::int32_t slot) {
  const std::size_t mask = slot_index_.size() - 1;
  std::size_t at = mix(1, lists_[slot].id) & mask;
  while (slot_index_[at] >= 0) at = (at + 1) & mask;
  slot_index_[at] = slot;
}

std::int32_t Program::slot(const ListView& list, SlotInfo info) {
  if (const std::int32_t known = find_slot(list.id); known >= 0) return known;
  const bool one_for_all = info.rate == Rate::uniform;
  const int domain = one_for_all ? -1 : int(domain_parent_.size());
  if (!one_for_all) domain_parent_.push_back(domain);
  info.strided = list.layouts != nullptr;
  slots_.push_back(info);
  lists_.push_back(list);
  slot_domains_.push_back(domain);
  current_.push_back(-1);
  last_read_.push_back(-1);
  first_store_.push_back(-1);
  store_places_.emplace_back();
  store_of_slot_.push_back(-1);
  const auto added = std::int32_t(slots_.size()) - 1;
  if (slots_.size() * 2 > slot_index_.size()) {
    slot_index_.assign(std::max<std::size_t>(16, slot_index_.size() * 2), -1);
    for (std::int32_t slot = 0; slot < added; ++slot) index_slot(slot);
  }
  index_slot(added);
  return added;
}

std::int32_t Program::element_slot(ValueId id) const {
  for (std::size_t s = 0; s < slots_.size(); ++s) {
    if (slots_[s].rate != Rate::element) continue;
    if (find_domain(slot_domains_[s]) == domain(id)) return std::int32_t(s);
  }
  return -1;
}

ValueId Program::append(const Node& node, int domain,
                        std::source_location place) {
  if (is_reduction(node.op)) reductions_.push_back(ValueId(nodes_.size()));
  nodes_.push_back(node);
  node_domains_.push_back(domain);
  places_.push_back(place);
  call_places_.push_back(CallPlace::or_else(place));
  return ValueId(nodes_.size()) - 1;
}

ValueId Program::load(std::int32_t slot, std::source_location place) {
  const auto index = std::size_t(slot);
  last_read_[index] = std::int32_t(nodes_.size());
  const SlotInfo info = slots_[index];
  // Like constants, numbers in memory are loaded again wherever they are used,
  // so that groups sharing one still look the same. They are read when the
  // tensors are processed.
  const bool one_for_all = info.rate == Rate::uniform;
  if (current_[index] < 0 || one_for_all) {
    const DType dtype =
        info.rate == Rate::element ? value_type(info.dtype) : DType::float64;
    const Rate rate = one_for_all ? Rate::entry : info.rate;
    current_[index] = append({OpCode::load, rate, dtype, 0, {slot}},
                             slot_domains_[index], place);
  }
  return current_[index];
}

ValueId Program::constant(double value, const Origin& origin) {
  return scalar(OpCode::constant, {{value, nullptr}, origin});
}

ValueId Program::argument(double value, const Origin& origin) {
  return scalar(OpCode::argument, {{value, nullptr}, origin});
}

ValueId Program::scalar(OpCode op, const ScalarLeaf& leaf) {
  scalars_.push_back(leaf);
  const auto scalar = std::int32_t(scalars_.size()) - 1;
  return append({op, Rate::uniform, DType::float64, 0, {scalar}}, -1,
                leaf.origin.place);
}

ValueId Program::apply(OpCode op, std::span<const ValueId> in,
                       std::source_location place) {
  Node result{op, Rate::uniform, DType::float64, std::uint8_t(in.size()), {}};
  std::fill(std::begin(result.in), std::end(result.in), -1);
  int domain = -1;
  for (const ValueId id : in) {
    const Node& operand = node(id);
    const bool first = result.rate != Rate::element;
    result.rate = std::max(result.rate, operand.rate);
    domain = join(domain, node_domains_[id]);
    if (operand.rate != Rate::element) continue;
    result.dtype = first ? operand.dtype : promote(result.dtype, operand.dtype);
  }
  for (std::size_t k = 0; k < in.size(); ++k) {
    const bool element = node(in[k]).rate == Rate::element;
    result.in[k] = element ? cast(in[k], result.dtype, place) : in[k];
  }
  return append(result, domain, place);
}

// What is stored since may share memory with the list that the value stands for.
ValueId Program::reduce(OpCode op, ValueId value, std::source_location place) {
  const std::int32_t stored = events_.empty() ? 0 : events_.back().at;
  const auto same =
      std::find_if(reductions_.begin(), reductions_.end(), [&](ValueId known) {
        return known >= stored && node(known).op == op &&
               node(known).in[0] == value;
      });
  if (same != reductions_.end()) return *same;
  return append({op, Rate::entry, DType::float64, 1, {value, -1, -1, -1}},
                is_total(op) ? -1 : node_domains_[value], place);
}

ValueId Program::cast(ValueId value, DType dtype, std::source_location place) {
  if (node(value).dtype == dtype) return value;
  return append({OpCode::cast, Rate::element, dtype, 1, {value, -1, -1, -1}},
                node_domains_[value], place);
}

// Converts a value to the rate and dtype of the slot it is stored into. A cast
// rounds once: a number must not become a float on its way to 16 bits.
ValueId Program::convert(ValueId value, SlotInfo to, int domain,
                         std::source_location place) {
  const Node& from = node(value);
  to.dtype = value_type(to.dtype);  // blocks take floats
  const bool rounds =
      from.rate == Rate::element
          ? from.dtype != to.dtype
          : is_reduced(to.dtype) ||
                (to.rate == Rate::entry && to.dtype != DType::float64);
  const bool of_domain = node_domains_[value] >= 0;
  if (from.rate == to.rate && of_domain && !rounds) return value;
  const OpCode op = rounds ? OpCode::cast : OpCode::fill;
  return append({op, to.rate, to.dtype, 1, {value, -1, -1, -1}}, domain, place);
}

ValueId Program::convert_like(ValueId value, SlotInfo to, ValueId like,
                              std::source_location place) {
  refuse_elements(value, to, place);
  const int domain = join(node_domains_[like], node_domains_[value]);
  return convert(value, to, domain, place);
}

void Program::refuse_elements(ValueId value, SlotInfo to,
                              std::source_location place) const {
  if (node(value).rate <= to.rate) return;
  throw Error(
      "elements cannot be stored into a list of per-tensor scalars, at " +
      at(CallPlace::or_else(place)) +
      "; store into a list of tensors of the same shapes");
}

void Program::store(std::int32_t slot, ValueId value,
                    std::source_location place) {
  const auto index = std::size_t(slot);
  refuse_elements(value, slots_[index], place);
  const int domain = join(slot_domains_[index], node_domains_[value]);
  store_converted(slot, convert(value, slots_[index], domain, place), place);
}

void Program::store_converted(std::int32_t slot, ValueId value,
                              std::source_location place) {
  const auto index = std::size_t(slot);
  join(slot_domains_[index], node_domains_[value]);
  current_[index] = value;
  events_.push_back({slot, value, std::int32_t(nodes_.size()), false});
  if (first_store_[index] < 0) {
    first_store_[index] = std::int32_t(nodes_.size());
    store_places_[index] = CallPlace::or_else(place);
    store_of_slot_[index] = std::int32_t(stores_.size());
    stores_.push_back({slot, value});
  } else {
    stores_[store_of_slot_[index]].value = value;
  }
}

void Program::store_result(std::int32_t slot, ValueId value,
                           std::source_location place) {
  store(slot, value, place);
  events_.back().is_result = true;
}

void Program::begin_operation() {
  const auto next = std::int32_t(nodes_.size());
  if (operations_.empty() || operations_.back() != next) {
    operations_.push_back(next);
  }
}

void Program::end_call(std::int32_t begin) {
  calls_.push_back({begin, std::int32_t(nodes_.size())});
}

ValueId Program::append_like(const Node& node, std::span<const ValueId> in,
                             std::int32_t slot, std::source_location place) {
  Node added = node;
  int domain = slot < 0 ? -1 : slot_domains_[slot];
  for (std::size_t k = 0; k < in.size(); ++k) {
    added.in[k] = in[k];
    domain = join(domain, node_domains_[in[k]]);
  }
  if (is_total(node.op)) domain = -1;
  return append(added, domain, place);
}

void Program::clear() {
  nodes_.clear();
  node_domains_.clear();
  places_.clear();
  call_places_.clear();
  slots_.clear();
  lists_.clear();
  std::fill(slot_index_.begin(), slot_index_.end(), -1);
  slot_domains_.clear();
  current_.clear();
  last_read_.clear();
  first_store_.clear();
  store_places_.clear();
  stores_.clear();
  store_of_slot_.clear();
  scalars_.clear();
  reductions_.clear();
  operations_.clear();
  calls_.clear();
  events_.clear();
  domain_parent_.clear();
}

std::source_location Program::read_place(std::int32_t slot) const {
  // Either the load itself, or the operation recorded next.
  const std::int32_t read = last_read(slot);
  const bool known = read >= 0 && std::size_t(read) < call_places_.size();
  return known ? call_places_[read] : std::source_location();
}

std::uint64_t Program::structure_hash() const {
  std::uint64_t hash = hash_words(std::uint64_t(1), nodes());
  hash = hash_words(hash, slots());
  return hash_words(hash, stores());
}

bool Program::same_structure(const Program& other) const {
  return same_bytes(nodes(), other.nodes()) &&
         same_bytes(slots(), other.slots()) &&
         same_bytes(stores(), other.stores()) &&
         // The overlap check depends on the order of reads and stores.
         last_read_ == other.last_read_ && first_store_ == other.first_store_;
}

}  // namespace fuse
