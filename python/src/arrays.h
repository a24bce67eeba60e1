#pragma once

#include <Python.h>
#include <nanobind/nanobind.h>

#include <memory>
#include <string>
#include <vector>

#include "fusebook/dlpack/dlpack_abi.h"
#include "fusebook/tensor/tensor.h"

namespace fuse::python {

/// What a Python object says of its elements; valid until the object changes
/// or this does.
class Description {
 public:
  Description() = default;
  Description(const Description&) = delete;
  Description& operator=(const Description&) = delete;
  ~Description() { release(); }

  /// Asks a torch tensor through the table of its type, a NumPy array through
  /// its buffer. False for an object that has neither; then it may lend a
  /// tensor. Throws Error for memory that may only be read, if `writes`.
  bool ask(PyObject* object, bool writes);
  const DLTensor& tensor() const { return tensor_; }

 private:
  void release();
  void take_buffer();

  DLTensor tensor_ = {};
  Py_buffer buffer_ = {};
  bool has_buffer_ = false;
  std::vector<std::int64_t> strides_;
};

/// A tensor over the memory of a Python object, which it keeps alive. Throws
/// Error, with `what` and why, for anything but an array of numbers in host
/// memory or on a GPU.
Tensor tensor_of(nanobind::handle object, const char* what, bool writes);

/// The functions by which a type lends its tensors, or null.
const DLPackExchangeAPI* exchange_of(PyTypeObject* type);

/// The same of an array's type: arrays of one library have one table.
inline const DLPackExchangeAPI* library_of(nanobind::handle array) {
  return exchange_of(Py_TYPE(array.ptr()));
}

/// The first line of the pending exception, which is none afterwards.
std::string take_exception();

/// True for an object that may move its elements while it is shown: a torch
/// tensor. A NumPy array, whose buffer is taken, refuses to.
bool is_watched(nanobind::handle object);

/// A tensor of ours, for other libraries: what torch.from_dlpack and
/// numpy.from_dlpack take. One in 8 bits is its bytes (see codes_to_dlpack).
struct Array {
  Tensor tensor;
};

/// Adds Array to the module.
void define_arrays(nanobind::module_& module);

}  // namespace fuse::python
