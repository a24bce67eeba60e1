#include "group_options.h"

#include <fmt/core.h>
#include <nanobind/stl/string.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

namespace nb = nanobind;

namespace fuse::python {
namespace {

// False for what is not about storage.
bool take_storage(const std::string& name, const nb::handle& value,
                  GroupStorage& storage) {
  const auto flag = [&](bool& on) { on = nb::cast<bool>(value); };
  if (name == "master_weights") {
    flag(storage.master_weights);
  } else if (name == "split_masters") {
    flag(storage.split_masters);
  } else if (name == "stochastic_rounding") {
    flag(storage.stochastic_rounding);
  } else if (name == "opmath") {
    flag(storage.opmath);
  } else if (name == "rounding_seed") {
    storage.rounding_seed = nb::cast<std::uint32_t>(value);
  } else if (name == "states_8bit") {
    flag(storage.states_8bit);
  } else if (name == "min_8bit_size") {
    storage.min_8bit_size = nb::cast<std::int64_t>(value);
  } else if (name == "state_block_size") {
    storage.state_block_size = nb::cast<std::int64_t>(value);
  } else {
    return false;
  }
  return true;
}

}  // namespace

ChosenOptions options_from(const nb::dict& given,
                           const std::string& optimizer) {
  ChosenOptions chosen;
  for (const auto& [key, value] : given) {
    const auto name = nb::cast<std::string>(key);
    if (take_storage(name, value, chosen.storage)) continue;
    if (PyBool_Check(value.ptr())) {
      chosen.values.emplace_back(name, nb::cast<bool>(value));
    } else if (PyTuple_Check(value.ptr())) {
      const auto pair = nb::cast<nb::tuple>(value);
      for (std::size_t i = 0; i < pair.size(); ++i) {
        chosen.values.emplace_back(fmt::format("{}[{}]", name, i),
                                   Scalar(nb::cast<double>(pair[i])));
      }
    } else {
      chosen.values.emplace_back(name, Scalar(nb::cast<double>(value)));
    }
  }
  chosen.storage.check_sizes(optimizer + ": ");
  return chosen;
}

}  // namespace fuse::python
