#include <type_traits>
#include <utility>

#define FUSE_DEVICE x86_64_v4
#define FUSE_INSTRUCTION_SET "x86-64-v4"
#include "fusebook/ops/loops.inc"
