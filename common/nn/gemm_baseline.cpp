#define FUSE_GEMM gemm_baseline
#include "fusebook/nn/gemm.inc"
