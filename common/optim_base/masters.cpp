// The masters of a StateStore, whole or the lower halves of split ones.
#include <fmt/core.h>

#include <array>
#include <span>

#include "fusebook/ops/loops.h"
#include "fusebook/optim_base/state_store.h"
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

}  // namespace

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
    entry.tensors[spec.name] = std::move(master);
  }
}

// Of the other kind, if there is one, with all its bits; else of the parameter.
Tensor StateStore::make_master(Entry& entry, const StateSpec& spec) {
  const bool split = spec.name == low_half_name;
  Tensor master = empty_like(entry.param, *spec.dtype);
  const char* const other = split ? master_name : low_half_name;
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

// Without steps that move both, they would be out of date.
void StateStore::drop_masters(std::span<const Tensor> params) {
  for (const Tensor& param : params) {
    ParamStates& states = entries_[param.impl().get()].tensors;
    if (states.erase(master_name) + states.erase(low_half_name) > 0) ++version_;
  }
}

}  // namespace fuse
