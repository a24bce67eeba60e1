// What a StateStore keeps for parameters in 16 bits: masters, whole or the lower
// halves of split ones, or keys of random bits. And the tables of states of groups
// that have them switched on, or states in 8 bits.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <deque>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "fusebook/ops/loops.h"
#include "fusebook/optim_base/state_store.h"
#include "fusebook/prelude/philox.h"
#include "fusebook/support/error.h"

namespace fuse {
namespace {

// On the host: it happens once in a run, if at all.
template <class... Tensors>
Tensor apply(OpCode op, const Tensors&... operands) {
  const std::array in = {
      operands.to(DType::float32).to(cpu_device).contiguous()...};
  std::array<const void*, sizeof...(operands)> addresses;
  for (std::size_t k = 0; k < in.size(); ++k) addresses[k] = in[k].raw_data();
  const Tensor result = empty(in[0].shape(), DType::float32);
  loops().ops[std::size_t(DType::float32)][std::size_t(op)][0](
      result.raw_data(), addresses.data(), result.numel());
  return result;
}

void check_splits(const Tensor& param) {
  if (param.dtype() == DType::bfloat16) return;
  throw Error(
      fmt::format("split_masters: a parameter with shape {} is in {}, which is "
                  "not the upper "
                  "half of a float32; put it in a group with master_weights",
                  to_string(param.shape()), name_of(param.dtype())));
}

void check_rounds(const Tensor& param) {
  if (param.dtype() == DType::bfloat16) return;
  throw Error(fmt::format(
      "stochastic_rounding: a parameter with shape {} is in {}, but "
      "only bfloat16 is rounded that way; put it in a group with "
      "master_weights",
      to_string(param.shape()), name_of(param.dtype())));
}

}  // namespace

bool is_master(const StateSpec& spec) {
  return spec.name == master_name || spec.name == low_half_name;
}

bool is_rounding_key(const StateSpec& spec) {
  return spec.name == rounding_key_name;
}

void StateStore::create_masters(std::span<const Tensor> params,
                                const StateSpec& spec) {
  for (const Tensor& param : params) {
    if (!is_half(param.dtype())) continue;
    if (spec.name == low_half_name) check_splits(param);
    has_masters_ = true;
    Entry& entry = entries_[param.impl().get()];
    if (entry.tensors.contains(spec.name)) continue;
    Tensor master = make_master(entry, spec);
    made_.push_back({param.impl().get(), spec.name, {}});
    entry.tensors[std::string(spec.name)] = std::move(master);
  }
}

// Of the other kind, if there is one, with all its bits; else of the parameter.
Tensor StateStore::make_master(Entry& entry, const StateSpec& spec) {
  const bool split = spec.name == low_half_name;
  Tensor master = empty_like(entry.param, *spec.dtype);
  const std::string_view other = split ? master_name : low_half_name;
  const auto found = entry.tensors.find(other);
  if (found == entry.tensors.end()) {
    if (split) {
      master.fill_(0);
    } else {
      master.copy_(entry.param);
    }
    return master;
  }
  const Tensor before = found->second;
  if (split) {
    master.copy_(apply(OpCode::low_half, before));
    entry.param.copy_(apply(OpCode::high_half, before));
  } else {
    master.copy_(apply(OpCode::join_halves, entry.param, before));
  }
  made_.push_back({entry.param.impl().get(), other, before});
  entry.tensors.erase(found);
  ++version_;
  return master;
}

void StateStore::drop(std::span<const Tensor> params, std::string_view name) {
  for (const Tensor& param : params) {
    ParamStates& states = entries_[param.impl().get()].tensors;
    if (states.erase(std::string(name)) > 0) ++version_;
  }
}

double rounding_key(std::uint32_t seed, std::size_t number) {
  const device::RandomBits bits = device::philox(seed, number, 0);
  return double((bits.words[0] | device::u64(bits.words[1]) << 32) >> 11);
}

void StateStore::create_rounding_keys(std::span<const Tensor> params,
                                      std::span<const std::size_t> numbers,
                                      const StateSpec& spec) {
  std::vector<Tensor> theirs;
  std::vector<double> keys;
  for (std::size_t i = 0; i < params.size(); ++i) {
    if (!is_half(params[i].dtype())) continue;
    check_rounds(params[i]);
    has_keys_ = true;
    const Entry& entry = entries_[params[i].impl().get()];
    if (entry.tensors.contains(spec.name)) continue;
    const PartOf* const part = part_of(params[i]);
    theirs.push_back(params[i]);
    keys.push_back(rounding_key(std::uint32_t(spec.initial),
                                part != nullptr ? part->number : numbers[i]));
  }
  std::vector<Tensor> fresh = scalars_beside(theirs);
  for (std::size_t i = 0; i < fresh.size(); ++i) {
    const TensorImpl* const param = theirs[i].impl().get();
    fresh[i].fill_(keys[i]);
    made_.push_back({param, spec.name, {}});
    entries_[param].tensors[std::string(spec.name)] = fresh[i];
  }
}

void StateStore::set_part(const Tensor& part, PartOf of) {
  check_defined(part, "the part");
  parts_[part.impl().get()] = {part.impl(), of};
}

const PartOf* StateStore::part_of(const Tensor& param) const {
  const auto found = parts_.find(param.impl().get());
  if (found == parts_.end()) return nullptr;
  return found->second.tensor.lock() == param.impl() ? &found->second.of
                                                     : nullptr;
}

std::int64_t StateStore::first_element(const Tensor& param) const {
  const PartOf* const part = part_of(param);
  return part != nullptr ? part->first : 0;
}

namespace {

// What a table is made for.
using TableKey = std::pair<std::int64_t, std::int64_t>;

// Tables made of others, by what they are made for. Optimizers have few, and each is
// asked for at every step. One that is made for each optimizer may come to lie where
// another was.
class SpecTables {
 public:
  template <class Change>
  std::span<const StateSpec> find(std::span<const StateSpec> specs,
                                  TableKey key, Change change) {
    const std::scoped_lock lock(mutex_);
    for (const Made& each : all_) {
      if (each.key != key) continue;
      if (std::ranges::equal(each.from, specs)) return each.table;
    }
    const std::vector<StateSpec> own(specs.begin(), specs.end());
    Made& made = all_.emplace_back(Made{own, key, own});
    change(made.table);
    return made.table;
  }

 private:
  struct Made {
    std::vector<StateSpec> from;
    TableKey key;
    std::vector<StateSpec> table;
  };
  std::mutex mutex_;
  std::deque<Made> all_;
};

}  // namespace

std::span<const StateSpec> with_masters(std::span<const StateSpec> specs,
                                        bool split) {
  static SpecTables tables;
  return tables.find(
      specs, {split ? 1 : 0, 0}, [=](std::vector<StateSpec>& table) {
        for (StateSpec& spec : table) spec.beside_master = true;
        table.push_back({.name = split ? low_half_name : master_name,
                         .dtype = split ? DType::int16 : DType::float32});
      });
}

void check_state_block_size(const std::string& place, std::int64_t size) {
  if (is_block_size(size)) return;
  throw Error(fmt::format(
      "{}state_block_size must be a power of two from 32 to {}, but is {}",
      place, largest_block, size));
}

std::span<const StateSpec> with_rounding_keys(std::span<const StateSpec> specs,
                                              std::uint32_t seed) {
  static SpecTables tables;
  return tables.find(specs, {seed, 0}, [=](std::vector<StateSpec>& table) {
    for (StateSpec& spec : table) spec.beside_master = true;
    table.push_back({.name = rounding_key_name,
                     .initial = double(seed),
                     .rate = Rate::entry});
  });
}

std::span<const StateSpec> with_8bit_states(std::span<const StateSpec> specs,
                                            std::int64_t min_8bit_size,
                                            std::int64_t state_block_size) {
  static SpecTables tables;
  check_state_block_size("states in 8 bits: ", state_block_size);
  return tables.find(specs, {min_8bit_size, state_block_size},
                     [&](std::vector<StateSpec>& table) {
                       for (StateSpec& spec : table) {
                         if (is_master(spec)) continue;
                         spec.min_8bit_size = min_8bit_size;
                         spec.state_block_size = state_block_size;
                       }
                     });
}

}  // namespace fuse
