#pragma once

/// All of torch.optim.lr_scheduler, with torch's names, options and formulas.

#include "lr_scheduler/by_name.h"
#include "lr_scheduler/composite.h"
#include "lr_scheduler/cosine.h"
#include "lr_scheduler/cycles.h"
#include "lr_scheduler/lambda.h"
#include "lr_scheduler/plateau.h"
#include "lr_scheduler/ramps.h"
#include "lr_scheduler/scheduler.h"
#include "lr_scheduler/state.h"
#include "lr_scheduler/steps.h"
