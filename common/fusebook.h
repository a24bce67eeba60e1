#pragma once

/// Everything a recipe uses.

#include "bandwidth.h"
#include "benchmark.h"
#include "checkpoint.h"
#include "compile.h"
#include "counters.h"
#include "foreach.h"
#include "fusion_grid.h"
#include "ladder.h"
#include "log.h"
#include "loss.h"
#include "lr_scheduler.h"
#include "model.h"
#include "optim/adam_by_hand.h"
#include "optim/all.h"
#include "random.h"
#include "recipe.h"
#include "scratch_directory.h"
#include "stack_options.h"
#include "tensor.h"
