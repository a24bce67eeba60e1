#pragma once

#include <cstdint>
#include <vector>

#include "bench/cases.h"
#include "random.h"
#include "tensor.h"

namespace fuse::bench {

/// Parameters of a case, with gradients that all its variants share, on the
/// default device.
class CaseModel {
 public:
  explicit CaseModel(const Case& wanted) {
    Generator generator(0);
    for (const std::int64_t size : wanted.sizes) {
      params_.push_back(rand({size}, generator));
      grads_.push_back(rand({size}, generator));
    }
  }

  std::vector<Tensor> copy() const {
    std::vector<Tensor> copies;
    for (std::size_t i = 0; i < params_.size(); ++i) {
      copies.push_back(params_[i].clone());
      copies.back().set_grad(grads_[i]);
    }
    return copies;
  }

  /// The same in another type, with gradients of their own.
  std::vector<Tensor> copy(DType dtype) const {
    std::vector<Tensor> copies;
    for (std::size_t i = 0; i < params_.size(); ++i) {
      copies.push_back(params_[i].to(dtype));
      copies.back().set_grad(grads_[i].to(dtype));
    }
    return copies;
  }

 private:
  std::vector<Tensor> params_;
  std::vector<Tensor> grads_;
};

}  // namespace fuse::bench
