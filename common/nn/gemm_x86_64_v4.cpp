#define FUSE_GEMM gemm_x86_64_v4
#include "fusebook/nn/gemm.inc"
