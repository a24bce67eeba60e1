#pragma once

/// Optimizers over tensors of LibTorch, for programs that have it: those of
/// `torch::optim`, and those that it does not have.

#include "fusebook/libtorch/optimizer.h"
#include "fusebook/libtorch/own_adadelta.h"
#include "fusebook/libtorch/own_adafactor.h"
#include "fusebook/libtorch/own_adamax.h"
#include "fusebook/libtorch/own_ademamix.h"
#include "fusebook/libtorch/own_asgd.h"
#include "fusebook/libtorch/own_lamb.h"
#include "fusebook/libtorch/own_lars.h"
#include "fusebook/libtorch/own_nadam.h"
#include "fusebook/libtorch/own_radam.h"
#include "fusebook/libtorch/own_rprop.h"
#include "fusebook/libtorch/torch_kinds.h"
#include "fusebook/libtorch/view.h"

namespace fuse::libtorch {

using ::torch::optim::AdagradOptions;
using ::torch::optim::AdamOptions;
using ::torch::optim::AdamWOptions;
using ::torch::optim::RMSpropOptions;
using ::torch::optim::SGDOptions;

/// The optimizers that LibTorch has, in one launch: subclasses of its own.
using Adagrad = Optimizer<kinds::Adagrad>;
using Adam = Optimizer<kinds::Adam>;
using AdamW = Optimizer<kinds::AdamW>;
using RMSprop = Optimizer<kinds::RMSprop>;
using SGD = Optimizer<kinds::SGD>;

}  // namespace fuse::libtorch
