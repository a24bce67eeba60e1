#pragma once

/// Every optimizer of torch.optim but Muon, which multiplies matrices; LAMB, LARS and
/// AdEMAMix; making one of unsupported.h throws Error.

#include "fusebook/optim/adadelta.h"
#include "fusebook/optim/adafactor.h"
#include "fusebook/optim/adagrad.h"
#include "fusebook/optim/adam.h"
#include "fusebook/optim/adamax.h"
#include "fusebook/optim/adamw.h"
#include "fusebook/optim/ademamix.h"
#include "fusebook/optim/asgd.h"
#include "fusebook/optim/lamb.h"
#include "fusebook/optim/lars.h"
#include "fusebook/optim/nadam.h"
#include "fusebook/optim/radam.h"
#include "fusebook/optim/rmsprop.h"
#include "fusebook/optim/rprop.h"
#include "fusebook/optim/sgd.h"
#include "fusebook/optim/unsupported.h"
