#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "fusebook/tensor/tensor.h"
#include "support/testing.h"

namespace testing {

/// Ways in which a tensor may lie in memory: in row-major order, with other
/// dimensions first, with elements left out, or as a part of a larger one.
enum class Lie { contiguous, transposed, stepped, narrowed };
constexpr int lie_count = 4;

/// A tensor inside of a larger block. Where each element lies is computed here,
/// by hand; the tensor itself is made with the views of the library.
class Placement {
 public:
  Placement(fuse::Shape shape, Lie lie, Random& random)
      : shape_(std::move(shape)), lie_(lie), base_(shape_) {
    if (shape_.empty()) lie_ = Lie::contiguous;
    const int rank = int(shape_.size());
    if (lie_ == Lie::transposed) {
      order_.resize(shape_.size());
      std::iota(order_.begin(), order_.end(), 0);
      const int by = rank > 1 ? 1 + random.below(rank - 1) : 0;
      std::rotate(order_.begin(), order_.begin() + by, order_.end());
      for (int d = 0; d < rank; ++d) {
        base_[std::size_t(d)] = shape_[std::size_t(order_[std::size_t(d)])];
      }
    } else if (lie_ != Lie::contiguous) {
      dim_ = random.below(rank);
      start_ = random.below(3);
      step_ = lie_ == Lie::stepped ? 2 + random.below(2) : 1;
      const std::int64_t size = shape_[std::size_t(dim_)];
      base_[std::size_t(dim_)] = start_ + size * step_ + random.below(2);
    }
    find_strides();
  }

  /// Elements of the whole block.
  std::size_t room() const {
    std::int64_t product = 1;
    for (const std::int64_t size : base_) product *= size;
    return std::size_t(product);
  }

  /// Where element `i`, counted in row-major order, lies in the block.
  std::size_t at(std::size_t i) const {
    std::size_t offset = first_;
    for (std::size_t d = shape_.size(); d-- > 0;) {
      const auto size = std::size_t(shape_[d]);
      offset += i % size * strides_[d];
      i /= size;
    }
    return offset;
  }

  fuse::Tensor tensor(void* block, fuse::DType dtype,
                      const fuse::Device& device = fuse::cpu_device) const {
    const auto whole =
        fuse::Tensor::from_memory(block, base_, {}, dtype, device);
    if (lie_ == Lie::transposed) {
      fuse::Shape dims(shape_.size());
      for (std::size_t d = 0; d < dims.size(); ++d) {
        dims[std::size_t(order_[d])] = std::int64_t(d);
      }
      return whole.permute(dims);
    }
    if (lie_ == Lie::contiguous) return whole;
    const std::int64_t size = shape_[std::size_t(dim_)];
    return lie_ == Lie::narrowed
               ? whole.narrow(dim_, start_, size)
               : whole.slice(dim_, start_, start_ + size * step_, step_);
  }

 private:
  void find_strides() {
    std::vector<std::size_t> of_base(base_.size());
    std::size_t stride = 1;
    for (std::size_t d = base_.size(); d-- > 0;) {
      of_base[d] = stride;
      stride *= std::size_t(base_[d]);
    }
    strides_ = of_base;
    if (lie_ == Lie::transposed) {
      for (std::size_t d = 0; d < order_.size(); ++d) {
        strides_[std::size_t(order_[d])] = of_base[d];
      }
    } else if (lie_ != Lie::contiguous) {
      first_ = std::size_t(start_) * of_base[std::size_t(dim_)];
      strides_[std::size_t(dim_)] *= std::size_t(step_);
    }
  }

  fuse::Shape shape_;
  Lie lie_;
  fuse::Shape base_;
  std::vector<int> order_;  // dimension of the tensor for each of the block
  int dim_ = 0;
  std::int64_t start_ = 0;
  std::int64_t step_ = 1;
  std::size_t first_ = 0;
  std::vector<std::size_t> strides_;
};

/// Some shape of up to four dimensions for so many elements.
inline fuse::Shape any_shape(std::int64_t numel, Random& random) {
  fuse::Shape shape = {numel};
  static constexpr std::array<std::int64_t, 6> factors = {2, 3, 5, 7, 11, 19};
  while (shape.size() < 4 && random.chance(0.7)) {
    std::int64_t factor = numel == 0 ? 1 + random.below(3) : 1;
    for (const std::int64_t each : factors) {
      if (numel > 0 && shape[0] % each == 0 && random.chance(0.5))
        factor *= each;
    }
    if (numel > 0) shape[0] /= factor;
    shape.insert(shape.begin() + 1 + random.below(int(shape.size())), factor);
  }
  return shape;
}

}  // namespace testing
