// The states of a stepper's parameters, shown to others and taken from them.
#include <fmt/core.h>
#include <nanobind/stl/string.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "caller_streams.h"
#include "coded_states.h"
#include "fusebook/compile/turn.h"
#include "stepper.h"

namespace nb = nanobind;

namespace fuse::python {
namespace {

// None for what is not one of our types.
std::optional<DType> type_of(const nb::handle& object) {
  try {
    return tensor_of(object, "", false).dtype();
  } catch (const Error&) {
    return {};
  }
}

// Whether these are the first values of a dict; what others added stands behind.
bool begins_with(PyObject* entry, const nb::handle& values) {
  PyObject* key = nullptr;
  PyObject* value = nullptr;
  Py_ssize_t at = 0;
  for (const nb::handle shown : nb::cast<nb::tuple>(values)) {
    if (PyDict_Next(entry, &at, &key, &value) == 0) return false;
    if (value != shown.ptr()) return false;
  }
  return true;
}

}  // namespace

bool still_shows(const nb::handle& state, const nb::list& entries,
                 const nb::list& values) {
  if (nb::len(state) != entries.size()) return false;
  if (!PyDict_Check(state.ptr())) return true;  // nothing else is looked at
  PyObject* key = nullptr;
  PyObject* entry = nullptr;
  Py_ssize_t at = 0;
  for (std::size_t i = 0; PyDict_Next(state.ptr(), &at, &key, &entry) != 0;
       ++i) {
    if (entry != entries[i].ptr() || !begins_with(entry, values[i]))
      return false;
  }
  return true;
}

nb::dict Stepper::states(std::size_t param) const {
  const Turn turn(busy_);
  nb::dict all;
  for (const auto& [name, tensor] :
       any_.optimizer->states(params_.at(param).tensor)) {
    all[name.c_str()] = nb::cast(Array{tensor});
  }
  return all;
}

bool Stepper::knows(std::size_t param, const nb::handle& name) const {
  if (!nb::isinstance<nb::str>(name)) return false;
  try {
    any_.optimizer->plain_state_dtype("", group_of(param),
                                      params_.at(param).tensor,
                                      nb::cast<std::string>(name));
  } catch (const Error&) {
    return false;
  }
  return true;
}

std::size_t Stepper::group_of(std::size_t param) const {
  std::size_t group = 0;
  for (std::size_t end = sizes_[0]; end <= param; end += sizes_[++group]) {
  }
  return group;
}

const GroupStorage& Stepper::storage_of(std::size_t param) const {
  return std::as_const(*any_.optimizer).group(group_of(param)).storage();
}

// Torch's optimizers carry what is kept beside a parameter along, in the
// parameter's type, and step without it: then it is no longer true, and the next
// step makes it anew.
bool Stepper::is_outdated(std::size_t i, const std::string& name,
                          const nb::handle& object) const {
  const GroupStorage& storage = storage_of(i);
  const bool masters = storage.master_weights || storage.split_masters;
  if (name == low_half_name) {
    return !storage.split_masters || type_of(object) != DType::int16;
  }
  if (name == master_name) {
    return !masters || storage.split_masters ||
           type_of(object) != DType::float32;
  }
  return name == rounding_key_name &&
         (masters || !storage.stochastic_rounding ||
          type_of(object) != DType::float64);
}

// A copy of a state that is somewhere else, in the type that a step takes.
Tensor Stepper::state_from(std::size_t i, const std::string& name,
                           const nb::handle& object,
                           const std::string& from) const {
  const Tensor& param = params_[i].tensor;
  const std::string what = fmt::format("\"{}\" of {}", name, name_of(i));
  const auto dtype = any_.optimizer->plain_state_dtype(
      from + ": " + name_of(i) + ": ", group_of(i), param, name);
  if (dtype && is_coded(object)) {
    return state_from_codes(object, what.c_str(), param.shape(),
                            storage_of(i).state_block_size);
  }
  const Tensor given = tensor_of(object, what.c_str(), false);
  return dtype ? given.to(*dtype).clone()
               : given.cpu().to(DType::float64).clone();
}

void Stepper::restore(const nb::dict& states, const std::string& from) {
  const Turn turn(busy_);
  const CallerStreams streams;
  join_streams();  // they may still read what is replaced
  std::vector<Tensor> params;
  std::vector<ParamStates> all;
  for (const auto& [key, value] : states) {
    const auto i = nb::cast<std::size_t>(key);
    const Tensor& param = params_.at(i).tensor;
    ParamStates own;
    for (const auto& [name, object] : nb::cast<nb::dict>(value)) {
      const auto text = nb::cast<std::string>(name);
      if (is_outdated(i, text, object)) continue;
      own[text] = state_from(i, text, object, from);
    }
    any_.optimizer->check_states(from + ": " + name_of(i) + ": ", group_of(i),
                                 param, own);
    params.push_back(param);
    all.push_back(std::move(own));
  }
  any_.optimizer->prepare_states(params, all);
  for (std::size_t k = 0; k < params.size(); ++k) {
    any_.optimizer->restore_states(params[k], all[k]);
  }
  changes_ = any_.optimizer->state_changes();
}

}  // namespace fuse::python
