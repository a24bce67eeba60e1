#pragma once

#include <vector>

#include "fusebook/jit/pack_file.h"
#include "options.h"
#include "sources.h"

/// Compiles every kernel for everything that the options name, on all of this
/// machine's cores. Throws Error with a compiler's output, NoCompiler, and
/// NoGpu without NVRTC.
std::vector<fuse::PackedKernel> compile_all(const Sources& sources,
                                            const Options& options);
