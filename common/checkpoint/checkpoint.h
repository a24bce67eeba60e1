#pragma once

#include <string>
#include <vector>

#include "fusebook/checkpoint/safetensors.h"
#include "fusebook/lr_scheduler/scheduler.h"
#include "fusebook/optim_base/optimizer.h"

namespace fuse {

/// Saves a training run so that it can be resumed: the parameters, all
/// optimizer state that belongs to its options, the hyper-parameters, and the
/// schedulers. For a SequentialLR or ChainedScheduler pass only the scheduler
/// itself: its parts are included.
///
///     save_checkpoint("run.safetensors", opt, {&sched});
///
/// One file in the safetensors format, readable from Python: tensors under
/// names like "param_groups.0.params.3", "param_groups.0.state.3.exp_avg" and
/// (for a hyper-parameter that is a tensor) "param_groups.0.lr"; plain numbers
/// as text in the metadata, exact to the last bit. Gradients, and functions
/// passed to LambdaLR and similar schedulers, are not saved.
///
/// The file appears complete or not at all. Throws Error if it cannot be
/// written, UsageError if the path cannot be a file.
void save_checkpoint(const std::string& path, Optimizer& optimizer,
                     const std::vector<const SchedulerBase*>& schedulers = {});

/// Resumes a saved run: make the model, optimizer and schedulers as the saved
/// run did, then load. If the optimizer had named parameters, then and now,
/// they are matched by name, in any order; `options` lists those renamed since.
/// Everything is loaded in place, so a compiled step stays valid, and a new one
/// compiles once: under the policy that promotes numbers that moved, those of a
/// run with schedulers count as moved from the start. Switches such as amsgrad
/// are compared, not loaded.
///
/// Throws Error for a file that is damaged, foreign, or from a run that differs
/// (saying how, names first), and inside a compiled function; then nothing has
/// changed.
void load_checkpoint(const std::string& path, Optimizer& optimizer,
                     const std::vector<SchedulerBase*>& schedulers = {},
                     const LoadOptions& options = {});

/// Saves tensors by name, for example the parameters of a model.
void save_tensors(const std::string& path, const TensorMap& tensors);

/// Overwrites tensors with those saved by save_tensors. Throws Error unless
/// names, shapes and dtypes match; then nothing has changed.
void load_tensors(const std::string& path, const TensorMap& tensors);

}  // namespace fuse
