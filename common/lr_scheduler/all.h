#pragma once

/// All of torch.optim.lr_scheduler, and the one of torch.optim.swa_utils, with
/// torch's names, options and formulas.

#include "fusebook/lr_scheduler/by_name.h"
#include "fusebook/lr_scheduler/composite.h"
#include "fusebook/lr_scheduler/cosine.h"
#include "fusebook/lr_scheduler/cycles.h"
#include "fusebook/lr_scheduler/lambda.h"
#include "fusebook/lr_scheduler/plateau.h"
#include "fusebook/lr_scheduler/ramps.h"
#include "fusebook/lr_scheduler/scheduler.h"
#include "fusebook/lr_scheduler/state.h"
#include "fusebook/lr_scheduler/steps.h"
#include "fusebook/lr_scheduler/swa.h"
