#pragma once

/// Everything a recipe uses.

#include "bandwidth.h"
#include "benchmark.h"
#include "checkpoint.h"
#include "compile.h"
#include "counters.h"
#include "foreach.h"
#include "foreach_map.h"
#include "fusion_grid.h"
#include "ladder.h"
#include "log.h"
#include "lr_scheduler.h"
#include "model.h"
#include "optim/adam.h"
#include "optim/adam_by_hand.h"
#include "optim/adamw.h"
#include "random.h"
#include "recipe.h"
#include "stack_options.h"
#include "tensor.h"
