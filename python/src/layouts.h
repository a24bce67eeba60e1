#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "fusebook/dlpack/dlpack_abi.h"
#include "fusebook/tensor/tensor.h"

namespace fuse::python {

/// Where tensors lie and of what kind they are, in one piece of memory: each step
/// compares it with what the objects of Python say of themselves.
class Layouts {
 public:
  void clear();
  void add(const TensorImpl& tensor);
  /// Of a tensor that was moved.
  void update(std::size_t i, const TensorImpl& tensor);

  bool same_place(std::size_t i, const DLTensor& told) const;
  bool same_shape(std::size_t i, const DLTensor& told) const;
  /// Strides of dimensions of size 1, and of empty tensors, do not matter.
  bool same_strides(std::size_t i, const DLTensor& told) const;
  /// The same dtype on the same device.
  bool same_kind(std::size_t i, const DLTensor& told) const;
  bool is_empty(std::size_t i) const { return all_[i].is_empty; }
  const DLDevice& device(std::size_t i) const { return all_[i].device; }

 private:
  struct Layout {
    const void* data;
    std::size_t first;  // of its sizes; its strides follow
    std::int32_t ndim;
    DLDataType dtype;
    DLDevice device;
    bool contiguous;
    bool is_empty;
  };

  std::vector<Layout> all_;
  std::vector<std::int64_t> numbers_;  // sizes and strides
};

}  // namespace fuse::python
