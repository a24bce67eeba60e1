// One model, trained with every optimizer and every storage of weights and
// states.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "convergence/text.h"
#include "fusebook/ops/dtype.h"
#include "fusebook/optim_base/optimizer.h"
#include "fusebook/programs/compile_options.h"

namespace fuse::convergence {

/// How weights and states are stored. The first is float32.
struct StorageKind {
  const char* name;
  DType weights = DType::float32;
  bool masters = false;
  bool split = false;
  bool coded = false;
  bool stochastic = false;
};
std::span<const StorageKind> storages();

/// An optimizer with a rate that suits the model.
struct Rule {
  const char* name;
  std::unique_ptr<Optimizer> (*make)(const std::vector<Tensor>& weights);
};
std::span<const Rule> rules();

struct Outcome {
  double loss = 0;  ///< of all unseen examples, in nats a letter
  std::int64_t launches = 0;
  OptimizerMemory memory;
};

/// Trains for so many steps. The seed says how the weights begin and which
/// examples a step sees; the bits are the same on any number of threads.
Outcome train(const Text& text, const Rule& rule, const StorageKind& storage,
              int seed, int steps, const CompileOptions& options = {});

/// Of the model.
std::int64_t parameter_count();

}  // namespace fuse::convergence
