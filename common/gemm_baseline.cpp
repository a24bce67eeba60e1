#define FUSE_GEMM gemm_baseline
#include "gemm.inc"
