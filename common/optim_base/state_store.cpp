#include "fusebook/optim_base/state_store.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "fusebook/support/error.h"

namespace fuse {
namespace {

constexpr StateSpec step_spec = {.name = "step", .rate = Rate::entry};

const StateSpec& find_spec(const std::string& place,
                           std::span<const StateSpec> specs,
                           const std::string& name) {
  if (name == step_spec.name) return step_spec;
  const auto found = std::ranges::find(specs, name, &StateSpec::name);
  if (found != specs.end()) return *found;
  throw Error(place + name +
              " is not a state of this optimizer with its options");
}

// Without codes of 8 bits.
DType plain_dtype_of(const StateSpec& spec, const Tensor& param) {
  if (spec.dtype) return *spec.dtype;
  return spec.beside_master && is_half(param.dtype()) ? DType::float32
                                                      : param.dtype();
}

// What may be in a checkpoint: a step converts codes, and states of 16-bit parameters
// stay in float32 when masters or stochastic rounding are switched off.
bool fits(DType dtype, DType wanted) {
  return dtype == wanted || in_blocks(dtype) || in_blocks(wanted) ||
         (dtype == DType::float32 && is_half(wanted));
}

// Codes are of states that could be in 8 bits, with a sign where those have one.
bool fits(DType dtype, const StateSpec& spec, const Tensor& param) {
  const bool coded = in_blocks(dtype);
  if (coded && (is_master(spec) || is_average(spec) ||
                has_sign(dtype) == spec.nonnegative)) {
    return false;
  }
  return fits(dtype, state_dtype(spec, param));
}

void check_kept_dtype(const Tensor& state, const StateSpec& spec,
                      const Tensor& param) {
  const DType wanted = state_dtype(spec, param);
  if (!spec.beside_master || spec.rate == Rate::entry) return;
  if (fits(state.dtype(), wanted)) return;
  throw Error(fmt::format(
      "the state \"{}\" is kept in {} already, but masters and stochastic "
      "rounding need it in {}; switch them on before the first step",
      spec.name, name_of(state.dtype()), name_of(wanted)));
}

// In the order of the parameter's dimensions, if it has its shape.
Tensor empty_beside(const Tensor& param, const Shape& shape, DType dtype) {
  return shape == param.shape() ? empty_like(param, dtype)
                                : empty(shape, dtype, param.device());
}

std::string kind_of(const Shape& shape, DType dtype) {
  return "shape " + to_string(shape) + " and " + name_of(dtype);
}

}  // namespace

bool is_average(const StateSpec& spec) {
  return spec.shape == StateShape::rows || spec.shape == StateShape::columns;
}

std::vector<std::string> state_names(std::span<const StateSpec> specs,
                                     const Tensor& param) {
  check_defined(param, "the parameter");
  std::vector<std::string> names = {std::string(step_spec.name)};
  for (const StateSpec& spec : specs) {
    const bool beside_half = is_master(spec) || is_rounding_key(spec);
    if (beside_half && !is_half(param.dtype())) continue;
    if (has_state(spec, param)) names.emplace_back(spec.name);
  }
  return names;
}

ParamStates states_in_use(std::span<const StateSpec> specs, const Tensor& param,
                          ParamStates kept) {
  if (kept.empty()) return kept;
  check_defined(param, "the parameter");
  const std::vector<std::string> names = state_names(specs, param);
  std::erase_if(kept, [&](const auto& state) {
    return std::ranges::find(names, state.first) == names.end();
  });
  return kept;
}

void check_states(const std::string& place, const Tensor& param,
                  std::span<const StateSpec> specs, const ParamStates& states) {
  check_defined(param, "the parameter");
  if (states.empty()) return;
  if (!states.contains("step")) throw Error(place + "step is missing");
  for (const auto& [name, tensor] : states) {
    const StateSpec& spec = find_spec(place, specs, name);
    const bool number = spec.rate == Rate::entry;
    if (!tensor.defined()) throw Error(place + name + " is undefined");
    if (!has_state(spec, param)) {
      throw Error(place + name + " is not a state of a parameter with shape " +
                  to_string(param.shape()));
    }
    const Shape shape = state_shape(spec, param);
    const DType dtype = number ? DType::float64 : state_dtype(spec, param);
    const bool alike =
        number ? tensor.dtype() == dtype : fits(tensor.dtype(), spec, param);
    if (tensor.shape() == shape && alike) continue;
    throw Error(place + name + " has " +
                kind_of(tensor.shape(), tensor.dtype()) + ", but must have " +
                kind_of(shape, dtype));
  }
}

std::optional<DType> plain_state_dtype(const std::string& place,
                                       const Tensor& param,
                                       std::span<const StateSpec> specs,
                                       const std::string& name) {
  check_defined(param, "the parameter");
  const StateSpec& spec = find_spec(place, specs, name);
  if (spec.rate == Rate::entry) return {};
  return plain_dtype_of(spec, param);
}

DType state_dtype(const StateSpec& spec, const Tensor& param) {
  check_defined(param, "the parameter");
  const DType plain = plain_dtype_of(spec, param);
  const bool elements =
      spec.rate == Rate::element && !is_average(spec) && has_state(spec, param);
  const bool coded = spec.min_8bit_size && elements &&
                     plain != DType::float64 && param.is_contiguous() &&
                     param.numel() >= *spec.min_8bit_size;
  if (!coded) return plain;
  return with_block_size(spec.nonnegative ? DType::ublock8 : DType::block8,
                         spec.state_block_size);
}

bool has_state(const StateSpec& spec, const Tensor& param) {
  check_defined(param, "the parameter");
  if (spec.shape == StateShape::whole) return true;
  return (param.dim() >= 2) == (spec.shape != StateShape::vectors);
}

Shape state_shape(const StateSpec& spec, const Tensor& param) {
  check_defined(param, "the parameter");
  if (spec.rate == Rate::entry) return {};
  Shape shape = param.shape();
  if (spec.shape == StateShape::rows) shape[shape.size() - 1] = 1;
  if (spec.shape == StateShape::columns) shape[shape.size() - 2] = 1;
  return shape;
}

bool is_factored(std::span<const StateSpec> specs, const Tensor& param) {
  check_defined(param, "the parameter");
  return std::any_of(specs.begin(), specs.end(), [&](const StateSpec& spec) {
    return spec.shape != StateShape::whole &&
           spec.shape != StateShape::vectors && has_state(spec, param);
  });
}

bool has_8bit_states(std::span<const StateSpec> specs, const Tensor& param) {
  check_defined(param, "the parameter");
  return std::any_of(specs.begin(), specs.end(), [&](const StateSpec& spec) {
    return in_blocks(state_dtype(spec, param));
  });
}

std::vector<StateSpec> with_initials(std::span<const StateSpec> specs,
                                     ParamGroup& group) {
  std::vector<StateSpec> resolved(specs.begin(), specs.end());
  for (StateSpec& spec : resolved) {
    if (spec.initial_from.empty()) continue;
    spec.initial = group[std::string(spec.initial_from)].value();
  }
  return resolved;
}

void StateStore::create(std::span<const Tensor> params,
                        std::span<const std::size_t> numbers,
                        std::span<const StateSpec> specs) {
  create_steps(params);
  for (const StateSpec& spec : specs) {
    if (is_master(spec)) {
      create_masters(params, spec);
    } else if (is_rounding_key(spec)) {
      create_rounding_keys(params, numbers, spec);
    } else {
      create_states(params, spec);
    }
  }
  // Without steps that move both, masters would be out of date.
  if (has_masters_ && std::ranges::none_of(specs, is_master)) {
    drop(params, master_name);
    drop(params, low_half_name);
  }
  if (has_keys_ && std::ranges::none_of(specs, is_rounding_key)) {
    drop(params, rounding_key_name);
  }
}

void StateStore::create_steps(std::span<const Tensor> params) {
  std::vector<Entry*> fresh;
  std::vector<Tensor> theirs;
  for (const Tensor& param : params) {
    Entry& entry = entries_[param.impl().get()];
    entry.param = param;
    if (entry.step.defined()) continue;
    made_.push_back({param.impl().get(), {}, {}});
    fresh.push_back(&entry);
    theirs.push_back(param);
  }
  const std::vector<Tensor> steps = scalars_beside(theirs);
  for (std::size_t i = 0; i < fresh.size(); ++i) fresh[i]->step = steps[i];
}

// Of 16-bit parameters whose masters were switched off, some have states in float32;
// with the others they are one list for each dtype of parameters.
std::array<bool, dtype_count> StateStore::kept_wide(
    std::span<const Tensor> params, const StateSpec& spec) const {
  std::array<bool, dtype_count> wide = {};
  for (const Tensor& param : params) {
    if (!is_half(param.dtype()) || spec.rate == Rate::entry) continue;
    const Tensor kept = state(param, spec.name);
    const bool is_wide = kept.defined() && kept.dtype() == DType::float32;
    if (is_wide && is_half(state_dtype(spec, param))) {
      wide[std::size_t(param.dtype())] = true;
    }
  }
  return wide;
}

void StateStore::create_states(std::span<const Tensor> params,
                               const StateSpec& spec) {
  std::vector<Tensor*> numbers;
  std::vector<Tensor> theirs;
  const auto wide = kept_wide(params, spec);
  for (const Tensor& param : params) {
    if (!has_state(spec, param)) continue;
    Tensor& tensor =
        entries_[param.impl().get()].tensors[std::string(spec.name)];
    const DType own = state_dtype(spec, param);
    const bool widened = is_half(own) && wide[std::size_t(param.dtype())];
    const DType dtype = widened ? DType::float32 : own;
    if (tensor.defined()) {
      check_kept_dtype(tensor, spec, param);
      convert(tensor, spec, param, dtype);
      continue;
    }
    made_.push_back({param.impl().get(), spec.name, {}});
    if (spec.rate == Rate::entry) {
      numbers.push_back(&tensor);
      theirs.push_back(param);
    } else {
      tensor = empty_beside(param, state_shape(spec, param), dtype);
      tensor.fill_(spec.initial);
    }
  }
  std::vector<Tensor> fresh = scalars_beside(theirs);
  for (std::size_t i = 0; i < fresh.size(); ++i) {
    fresh[i].fill_(spec.initial);
    *numbers[i] = fresh[i];
  }
}

// To codes of 8 bits, or from them, as the option now says, and to float32 beside
// others of its list.
void StateStore::convert(Tensor& state, const StateSpec& spec,
                         const Tensor& param, DType wanted) {
  if (state.dtype() == wanted) return;
  const bool widens = is_half(state.dtype()) && wanted == DType::float32;
  if (!in_blocks(state.dtype()) && !in_blocks(wanted) && !widens) return;
  const Tensor converted = state.to(wanted);
  made_.push_back({param.impl().get(), spec.name, state});
  state = converted;
  ++version_;
}

const StateStore::Entry* StateStore::find(const Tensor& param) const {
  const auto found = entries_.find(param.impl().get());
  return found != entries_.end() ? &found->second : nullptr;
}

Tensor StateStore::state(const Tensor& param, std::string_view name) const {
  const Entry* const entry = find(param);
  if (entry == nullptr) return {};
  if (name == "step") return entry->step;
  const auto tensor = entry->tensors.find(name);
  return tensor != entry->tensors.end() ? tensor->second : Tensor();
}

ParamStates StateStore::states(const Tensor& param) const {
  const Entry* const entry = find(param);
  if (entry == nullptr || !entry->step.defined()) return {};
  ParamStates all = entry->tensors;
  all.emplace("step", entry->step);
  return all;
}

void StateStore::restore(const Tensor& param, const ParamStates& states) {
  check_defined(param, "the parameter");
  for (const auto& [name, value] : states) check_defined(value, name.c_str());
  ++version_;
  if (states.empty()) {
    entries_.erase(param.impl().get());
    return;
  }
  has_masters_ = has_masters_ || states.contains(master_name) ||
                 states.contains(low_half_name);
  has_keys_ = has_keys_ || states.contains(rounding_key_name);
  Entry& kept = entries_[param.impl().get()];
  kept.param = param;
  std::erase_if(kept.tensors, [&](const auto& state) {
    return !states.contains(state.first);
  });
  for (const auto& [name, value] : states) {
    Tensor& tensor = name == "step" ? kept.step : kept.tensors[name];
    if (tensor.defined() && tensor.dtype() == value.dtype()) {
      tensor.copy_(value);
    } else {
      tensor = value;  // in memory of its own: see prepare
    }
  }
}

// Single numbers are placed side by side, as `create` places them.
void StateStore::prepare(const std::vector<Tensor>& params,
                         std::vector<ParamStates>& states) const {
  if (params.size() != states.size()) {
    throw Error(
        fmt::format("prepare_states: there are {} parameters but the states of "
                    "{}; pass the "
                    "states of each parameter, in the same order",
                    params.size(), states.size()));
  }
  std::vector<Tensor*> numbers;
  std::vector<Tensor> theirs;
  for (std::size_t i = 0; i < params.size(); ++i) {
    check_defined(params[i], "a parameter");
    for (auto& [name, tensor] : states[i]) {
      check_defined(tensor, name.c_str());
      const Tensor kept = state(params[i], name);
      if (kept.defined() && kept.dtype() == tensor.dtype()) continue;
      if (tensor.dim() == 0 && tensor.dtype() == DType::float64) {
        numbers.push_back(&tensor);
        theirs.push_back(params[i]);
      } else {
        // With the same order of dimensions as a newly created state.
        Tensor laid_out =
            empty_beside(params[i], tensor.shape(), tensor.dtype());
        laid_out.copy_(tensor);
        tensor = laid_out;
      }
    }
  }
  std::vector<Tensor> fresh = scalars_beside(theirs);
  for (std::size_t i = 0; i < fresh.size(); ++i) {
    fresh[i].copy_(*numbers[i]);
    *numbers[i] = fresh[i];
  }
}

void StateStore::take_back() {
  if (!made_.empty()) ++version_;
  for (const auto& [param, name, before] : made_) {
    const auto entry = entries_.find(param);
    if (entry == entries_.end()) continue;
    if (before.defined()) {
      entry->second.tensors[std::string(name)] = before;
      // To split it has rounded its parameter in another way.
      if (name == master_name) entry->second.param.copy_(before);
    } else if (name.empty()) {
      entries_.erase(entry);
    } else {
      entry->second.tensors.erase(std::string(name));
    }
  }
  made_.clear();
}

void StateStore::drop_unreachable() {
  std::erase_if(entries_, [](const auto& entry) {
    return entry.second.param.impl().use_count() == 1;
  });
}

}  // namespace fuse
