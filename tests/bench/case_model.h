#pragma once

#include <cstdint>
#include <vector>

#include "bench/cases.h"
#include "fusebook/tensor/random.h"
#include "fusebook/tensor/tensor.h"

namespace fuse::bench {

/// Parameters of a case with their gradients, on the default device.
class CaseModel {
 public:
  explicit CaseModel(const Case& wanted) {
    Generator generator(0);
    for (const std::int64_t size : wanted.sizes) {
      params_.push_back(rand({size}, generator));
      params_.back().set_grad(rand({size}, generator));
    }
  }

  /// The parameters themselves, for variants that may share them.
  const std::vector<Tensor>& params() const { return params_; }

  /// Parameters of its own that share the gradients.
  std::vector<Tensor> copy() const {
    std::vector<Tensor> copies;
    for (const Tensor& param : params_) {
      copies.push_back(param.clone());
      copies.back().set_grad(param.grad());
    }
    return copies;
  }

  /// The same in another type, with gradients of their own.
  std::vector<Tensor> copy(DType dtype) const {
    std::vector<Tensor> copies;
    for (const Tensor& param : params_) {
      copies.push_back(param.to(dtype));
      copies.back().set_grad(param.grad().to(dtype));
    }
    return copies;
  }

 private:
  std::vector<Tensor> params_;
};

}  // namespace fuse::bench
