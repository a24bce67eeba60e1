#define FUSE_GEMM gemm_x86_64_v3
#include "fusebook/nn/gemm.inc"
