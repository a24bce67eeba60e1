#pragma once

#include <cstdint>
#include <vector>

#include "fusebook/harness/options.h"

namespace fuse {

/// `--layers N` and `--width N` of a recipe whose model is a linear stack.
inline std::vector<NumberOption> stack_options(std::int64_t layers,
                                               std::int64_t width) {
  return {{"layers", layers, 1, 100000, "number of linear layers"},
          {"width", width, 1, 65536, "inputs and outputs of each layer"}};
}

/// `--width N` of a recipe with one wide layer.
inline std::vector<NumberOption> width_option(std::int64_t width) {
  return {{"width", width, 1, 1 << 22, "outputs of the layer"}};
}

}  // namespace fuse
