// The states of a stepper's parameters, shown to others and taken from them.
#include <fmt/core.h>
#include <nanobind/stl/string.h>

#include <string>
#include <utility>
#include <vector>

#include "coded_states.h"
#include "stepper.h"
#include "turn.h"

namespace nb = nanobind;

namespace fuse::python {

nb::dict Stepper::states(std::size_t param) const {
  const Turn turn(busy_);
  nb::dict all;
  for (const auto& [name, tensor] :
       any_.optimizer->states(params_.at(param).tensor)) {
    all[name.c_str()] = nb::cast(Array{tensor});
  }
  return all;
}

std::size_t Stepper::group_of(std::size_t param) const {
  std::size_t group = 0;
  for (std::size_t end = sizes_[0]; end <= param; end += sizes_[++group]) {
  }
  return group;
}

// A copy of a state that is somewhere else, in the type that a step takes.
Tensor Stepper::state_from(std::size_t i, const std::string& name,
                           const nb::handle& object) const {
  const Tensor& param = params_[i].tensor;
  const std::string what = fmt::format("\"{}\" of {}", name, name_of(i));
  if (is_coded(object)) {
    return state_from_codes(object, what.c_str(), param.shape());
  }
  const Tensor given = tensor_of(object, what.c_str(), false);
  const auto dtype = any_.optimizer->plain_state_dtype(
      "load_state_dict: " + name_of(i) + ": ", group_of(i), param, name);
  return dtype ? given.to(*dtype).clone()
               : given.cpu().to(DType::float64).clone();
}

void Stepper::restore(const nb::dict& states) {
  const Turn turn(busy_);
  std::vector<Tensor> params;
  std::vector<ParamStates> all;
  for (const auto& [key, value] : states) {
    const auto i = nb::cast<std::size_t>(key);
    const Tensor& param = params_.at(i).tensor;
    ParamStates own;
    for (const auto& [name, object] : nb::cast<nb::dict>(value)) {
      const auto text = nb::cast<std::string>(name);
      own[text] = state_from(i, text, object);
    }
    any_.optimizer->check_states("load_state_dict: " + name_of(i) + ": ",
                                 group_of(i), param, own);
    params.push_back(param);
    all.push_back(std::move(own));
  }
  any_.optimizer->prepare_states(params, all);
  for (std::size_t k = 0; k < params.size(); ++k) {
    any_.optimizer->restore_states(params[k], all[k]);
  }
  show_anew();
}

}  // namespace fuse::python
