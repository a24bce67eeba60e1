#include <type_traits>
#include <utility>

#define FUSE_DEVICE baseline
#define FUSE_INSTRUCTION_SET "baseline"
#include "fusebook/ops/loops.inc"
