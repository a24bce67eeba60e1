#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "fusebook/checkpoint/safetensors.h"
#include "fusebook/lr_scheduler/scheduler.h"
#include "fusebook/optim_base/optimizer.h"

// What the file of a training run holds, and under which names.
namespace fuse {

/// The text under "format".
inline constexpr const char* run_format = "fusebook checkpoint 1";

/// How a switch is written.
std::string on_off(bool on);
/// What names begin with, of a group, or of one of its parameters.
std::string group_place(std::size_t group);
std::string state_place(std::size_t group, std::size_t param);
/// The names of a parameter, and of the text with its own name.
std::string param_place(std::size_t group, std::size_t param);
std::string name_place(std::size_t group, std::size_t param);

/// Throws Error for a scheduler that is null, or of another optimizer.
void check_scheduler(const Optimizer& optimizer,
                     const SchedulerBase* scheduler);

/// Everything that is saved.
struct RunContents {
  Metadata texts;
  TensorMap tensors;
};
/// That of an optimizer, with the parameters and states that it has.
RunContents contents_of_run(
    Optimizer& optimizer, const std::vector<const SchedulerBase*>& schedulers);

}  // namespace fuse
