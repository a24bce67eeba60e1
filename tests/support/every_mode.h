#pragma once

#include <doctest/doctest.h>

#include <functional>
#include <string>

#include "fusebook/compile/compile.h"

namespace testing {

/// Runs a function once.
using Run = std::function<void(const std::function<void()>&)>;

/// Subcases of `check`, which gets what runs a function: eagerly, and compiled for
/// each backend in one launch that nothing breaks.
inline void in_every_mode(const std::function<void(const Run&)>& check) {
  SUBCASE("eager") {
    check([](const auto& fn) { fn(); });
  }
  for (const fuse::Backend backend :
       {fuse::Backend::compiled, fuse::Backend::interpreted,
        fuse::Backend::simulated}) {
    SUBCASE(("backend " + std::to_string(int(backend))).c_str()) {
      check([&](const auto& fn) {
        auto step = fuse::compile(fn, {.fullgraph = true, .backend = backend});
        step();
        CHECK(step.counters().graph_breaks == 0);
      });
    }
  }
}

}  // namespace testing
