#include <type_traits>
#include <utility>

#define FUSE_DEVICE x86_64_v3
#define FUSE_INSTRUCTION_SET "x86-64-v3"
#include "fusebook/ops/loops.inc"
