#pragma once

#include <string>
#include <vector>

#include "fusebook/checkpoint/safetensors.h"
#include "fusebook/lr_scheduler/scheduler.h"
#include "fusebook/optim_base/optimizer.h"

namespace fuse {

/// Saves a training run, to go on with later: the parameters, everything that
/// the optimizer keeps for them, its hyper-parameters, and the schedulers. Of a
/// SequentialLR or ChainedScheduler give only itself: its parts go with it.
///
///     save_checkpoint("run.safetensors", opt, {&sched});
///
/// One file in the safetensors format, so that Python reads it: tensors under
/// names like "param_groups.0.params.3", "param_groups.0.state.3.exp_avg" and
/// (a hyper-parameter that is a tensor) "param_groups.0.lr"; plain numbers as
/// text in the metadata, exact to the last bit. Gradients, and functions given
/// to LambdaLR and its like, are not saved.
///
/// The file appears whole or not at all. Throws Error when it cannot be
/// written, UsageError for a place where no file can be.
void save_checkpoint(const std::string& path, Optimizer& optimizer,
                     const std::vector<const SchedulerBase*>& schedulers = {});

/// Goes on as the run did that was saved: make model, optimizer and schedulers
/// as that one did, then load. Where the optimizer was given names with its
/// parameters, then and now, they are known by them, in any order; `options`
/// tells which have got another name since. Everything is put where it belongs in place, so
/// that a compiled step stays as it is, and a new one compiles once: where the
/// policy is to promote numbers that moved, those of a run with schedulers count
/// as moved from the beginning. Switches such as amsgrad are not loaded but
/// compared.
///
/// Throws Error for a file that is damaged, foreign, or of a run that differs
/// (saying in what, names above all), and inside a compiled function; then nothing has changed.
void load_checkpoint(const std::string& path, Optimizer& optimizer,
                     const std::vector<SchedulerBase*>& schedulers = {},
                     const LoadOptions& options = {});

/// Saves tensors by name, for example the parameters of a model.
void save_tensors(const std::string& path, const TensorMap& tensors);

/// Overwrites tensors with those that save_tensors has saved. Throws Error
/// unless names, shapes and dtypes are the same; then nothing has changed.
void load_tensors(const std::string& path, const TensorMap& tensors);

}  // namespace fuse
