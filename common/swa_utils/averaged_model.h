#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <source_location>
#include <utility>
#include <vector>

#include "fusebook/tensor/tensor.h"
#include "fusebook/tensor/tensor_list.h"
#include "fusebook/trace/scalar.h"

namespace fuse {

/// How averages move, as operations on lists that write into `averaged`:
/// `current` holds the parameters, `num_averaged` for each how often it was
/// averaged before.
using MultiAvgFn =
    std::function<void(const TensorList& averaged, const TensorList& current,
                       const TensorList& num_averaged)>;

/// The mean of all parameters so far, like
/// torch.optim.swa_utils.get_swa_multi_avg_fn.
MultiAvgFn get_swa_multi_avg_fn();
/// `decay` times the average, and the rest of the parameter, like
/// torch.optim.swa_utils.get_ema_multi_avg_fn. Throws Error unless `decay` is
/// between 0 and 1.
MultiAvgFn get_ema_multi_avg_fn(double decay = 0.999);

/// What comes to an update of averages from outside.
struct AverageOptions {
  /// Unless it is 0, averages stay as they are, and the update does not count.
  std::optional<Scalar> skip = {};
};

/// Averages of parameters, on their device.
class ParameterAverages {
 public:
  /// `averaged` are the tensors to keep averages in, one for each parameter,
  /// with its dtype, shape and device. Throws Error for an undefined tensor.
  ParameterAverages(std::vector<Tensor> averaged, MultiAvgFn multi_avg_fn);

  /// Averages the parameters once more; the first time they are copied. Inside
  /// `compile`, after an optimizer's step, it is part of the same launch. Throws
  /// Error unless there are as many as averages, on their device and with their
  /// dtypes and shapes.
  void update(const std::vector<Tensor>& params,
              const AverageOptions& options = {},
              std::source_location place = std::source_location::current());
  /// How many updates were made, without those that were skipped. Waits for the
  /// device.
  std::int64_t n_averaged() const;
  /// Goes on after so many updates.
  void set_n_averaged(std::int64_t count);

 private:
  struct Part {
    TensorList averaged;
    TensorList current;
    TensorList counts;
    std::shared_ptr<ListImpl> kept;  // by an optimizer, when this was made
  };

  void find_parts(const std::vector<Tensor>& params);
  bool has_parts(const std::vector<Tensor>& params) const;
  Part part_of(const TensorList& current,
               const std::vector<std::size_t>& places) const;
  void update(const Part& part, std::source_location place) const;

  std::vector<Tensor> averaged_;
  std::vector<Tensor> counts_;  // float64, 0-d, one per parameter
  MultiAvgFn multi_avg_fn_;
  std::vector<Tensor> params_;  // that the parts are of
  std::vector<Part> parts_;
  std::uint64_t times_kept_ = 0;  // when they were found
};

/// torch.optim.swa_utils.AveragedModel: a copy of a model whose parameters are
/// averages of the model's. `Model` has `clone()`, `parameters()` and a call
/// operator, as Sequential has. Models here have no buffers, so there is no
/// `use_buffers`.
template <class Model>
class AveragedModel {
 public:
  /// Without a function, the mean of all parameters.
  explicit AveragedModel(const Model& model,
                         MultiAvgFn multi_avg_fn = get_swa_multi_avg_fn())
      : module(model.clone()),
        averages_(module.parameters(), std::move(multi_avg_fn)) {
    module.zero_grad();
  }

  /// The averages, as a model.
  Model module;

  /// The output of the averaged model.
  template <class Input>
  auto operator()(const Input& input) const {
    return module(input);
  }
  /// See ParameterAverages::update.
  void update_parameters(
      const Model& model, const AverageOptions& options = {},
      std::source_location place = std::source_location::current()) {
    averages_.update(model.parameters(), options, place);
  }
  /// How many updates were made; waits for the device.
  std::int64_t n_averaged() const { return averages_.n_averaged(); }
  /// Goes on after so many updates, with the parameters of `module`.
  void set_n_averaged(std::int64_t count) { averages_.set_n_averaged(count); }

 private:
  ParameterAverages averages_;
};

}  // namespace fuse
