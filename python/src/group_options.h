#pragma once

#include <nanobind/nanobind.h>

#include <string>

#include "fusebook/optim_base/param_group.h"

namespace fuse::python {

/// The options of a group: hyper-parameters and switches as torch.optim has them, and
/// how weights and states are kept.
struct ChosenOptions {
  GroupOptions values;
  GroupStorage storage;
};

/// From the values of a dict, whose kinds are checked in Python. Throws Error, which
/// names the optimizer, for sizes that cannot be.
ChosenOptions options_from(const nanobind::dict& given,
                           const std::string& optimizer);

}  // namespace fuse::python
