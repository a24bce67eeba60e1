#pragma once

#include "fusebook/distributed/ranks.h"

/// Of the program.
inline fuse::Ranks* given_ranks = nullptr;
