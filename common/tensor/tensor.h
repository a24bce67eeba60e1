#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <source_location>
#include <string>
#include <utility>
#include <vector>

#include "fusebook/device/device.h"
#include "fusebook/ops/dtype.h"
#include "fusebook/ops/float16.h"
#include "fusebook/support/undefined.h"

namespace fuse {

/// Sizes or strides of all dimensions, outermost first.
using Shape = std::vector<std::int64_t>;
struct ListImpl;
struct Storage;
class GradFn;
class Tensor;

/// The state shared by all handles to one tensor. Its memory stays the same,
/// unless the tensor is moved: see move_tensors.h.
struct TensorImpl {
  std::shared_ptr<Storage> storage;
  void* data = nullptr;
  std::int64_t numel = 0;
  DType dtype = DType::float32;
  /// See is_contiguous; computed when the strides are set.
  bool contiguous = true;
  Shape shape;
  /// Distance between neighbours in each dimension, in elements; never
  /// negative.
  Shape strides;
  std::shared_ptr<TensorImpl> grad;
  /// How it was computed, if gradients flow back from it; see autograd.h.
  std::shared_ptr<GradFn> grad_fn;
  /// Whether it gets a gradient, if it was not computed.
  bool requires_grad = false;
  /// The list through which kernels read a 0-d tensor; see number_list.
  std::shared_ptr<ListImpl> as_number;
};

/// A handle to numbers in the memory of a device; copies share the data, as in
/// torch. Reading the numbers of a GPU tensor copies them to the host and
/// waits. Tensors have any rank; rank 0 is a single number. Views show the
/// memory of another tensor in a different order, or a part of it.
///
/// A default-constructed or moved-from tensor, a missing gradient and a state
/// that is not kept are undefined. Undefined tensors can be copied, assigned
/// and asked whether they are defined(); everything else throws Error naming
/// what was called.
///
/// Gradients flow back from a number to what it was computed from: through the
/// functions of functional.h, the losses, models, views and copies, if one of
/// the tensors requires a gradient. Operations on lists, and anything that
/// writes into a tensor, are not differentiable.
class Tensor {
 public:
  Tensor() = default;
  explicit Tensor(std::shared_ptr<TensorImpl> impl) : impl_(std::move(impl)) {}

  /// A tensor over memory of others, without a copy. `strides` are in elements;
  /// `{}` means row-major order. `keep_alive` is released when the last tensor
  /// over this memory is gone; without it, the caller keeps the memory. Of a
  /// GPU's memory, the address is one there. Throws Error for a null address
  /// (unless there are no elements), sizes or strides that are negative, do not
  /// match or reach beyond 64 bits, on a GPU for an address that is not aligned
  /// to the elements, and if there is no such device.
  static Tensor from_memory(void* data, const Shape& shape,
                            const Shape& strides = {},
                            DType dtype = DType::float32,
                            const Device& device = cpu_device,
                            std::shared_ptr<void> keep_alive = {});

  /// False for a handle to nothing, such as a default-constructed one.
  bool defined() const { return impl_ != nullptr; }
  /// The size of each dimension.
  const Shape& shape() const { return self().shape; }
  /// Distance between neighbours in each dimension, in elements.
  const Shape& strides() const { return self().strides; }
  /// True if the elements are adjacent in row-major order.
  bool is_contiguous() const;
  /// The number of dimensions.
  std::int64_t dim() const { return std::int64_t(self().shape.size()); }
  /// The number of elements.
  std::int64_t numel() const { return self().numel; }
  DType dtype() const { return self().dtype; }  ///< The type of the elements.
  Device device() const;                        ///< Where the elements are.
  /// Bytes of all elements, without any gaps between them, and of the scales of
  /// blocks.
  std::size_t nbytes() const {
    const TensorImpl& own = self();
    return bytes_of(own.dtype, own.numel);
  }

  /// Typed address of the first element; `T` is float, double, Float16,
  /// BFloat16 or Int16. Flushes pending recorded writes to this tensor (a graph break).
  /// Throws Error if `T` does not match the tensor's dtype, or if the tensor is
  /// not in host memory.
  template <class T>
  T* data();
  template <class T>
  const T* data() const;

  /// Address of the first element on its device, whatever its dtype, for
  /// reading or writing there. Flushes pending work like `data`.
  void* address(bool write) const;

  /// Address on any device, for binding; does not flush pending work.
  void* raw_data() const { return self().data; }

  /// The value of a tensor with one element, as double. Throws Error otherwise.
  double item() const;
  /// All elements as doubles, in order.
  std::vector<double> to_vector() const;

  // Views, with the names and arguments of torch; gradients flow back through
  // them. Negative dimensions, indices and positions count from the end. All
  // throw Error for anything out of range.

  /// Swaps two dimensions.
  Tensor transpose(std::int64_t dim0, std::int64_t dim1) const;
  /// Transposes a matrix; a tensor with fewer dimensions is unchanged.
  Tensor t() const;
  /// Reorders dimensions: dims[k] becomes dimension k.
  Tensor permute(const Shape& dims) const;
  /// `length` elements of one dimension, starting at `start`.
  Tensor narrow(std::int64_t dim, std::int64_t start,
                std::int64_t length) const;
  /// One index of a dimension, which is removed.
  Tensor select(std::int64_t dim, std::int64_t index) const;
  /// Every `step`th element of a dimension from `start` up to, but not
  /// including, `end`; both are clamped to the valid range.
  Tensor slice(std::int64_t dim, std::int64_t start, std::int64_t end,
               std::int64_t step = 1) const;
  /// Another shape for the same elements; one size may be -1. Throws Error if
  /// this tensor is not contiguous.
  Tensor view(const Shape& shape) const;
  /// Repeats dimensions of size 1, and adds new ones in front, with stride 0;
  /// -1 keeps a size. Such a tensor can only be read.
  Tensor expand(const Shape& sizes) const;

  /// This tensor if it is contiguous, else a contiguous copy.
  Tensor contiguous() const;

  /// A copy with its own storage; dense tensors keep their order of dimensions,
  /// others become contiguous.
  Tensor clone() const;
  /// This tensor if it has that dtype, else a converted copy; its `grad` is not
  /// copied.
  Tensor to(DType dtype) const;
  /// This tensor if it is on that device, else a copy there. Throws Error if
  /// there is no such device.
  Tensor to(const Device& device) const;
  /// This tensor in host memory; a copy if it is on a GPU.
  Tensor cpu() const;
  /// Overwrites the data with `source`'s, broadcast to this shape and converted
  /// to this dtype. Throws Error if that is impossible, or if elements of this
  /// tensor share memory.
  void copy_(const Tensor& source);
  /// Writes the value, rounded to the dtype, into every element.
  void fill_(double value);

  /// True if this tensor gets a gradient, or was computed from one that does.
  bool requires_grad() const {
    const TensorImpl& own = self();
    return own.requires_grad || own.grad_fn != nullptr;
  }
  /// Sets whether `backward()` gives this tensor a gradient; true by default
  /// for parameters of models, false for other tensors. Throws Error for a
  /// tensor computed from one that requires a gradient: it always propagates.
  const Tensor& requires_grad_(bool requires_grad = true) const;
  /// The same memory, detached from the graph.
  Tensor detach() const;

  /// Moves this tensor to the memory of another one, as torch does: all handles
  /// and lists show that memory from now on, and its numbers. Gradient, graph
  /// and the state that an optimizer keeps stay; earlier views stay where they
  /// were. Costs a pass over all lists; flatten_ moves many tensors in one. Throws
  /// Error if shape, dtype or device differ, or if elements of `data` share
  /// memory. Other threads must not use the tensor meanwhile.
  void set_data(const Tensor& data) const;

  /// The gradient, or an undefined tensor.
  Tensor grad() const { return Tensor(self().grad); }
  /// Assigns the gradient, of any dtype and without its graph; an undefined tensor
  /// removes it. Throws Error if its shape or device differs from this tensor's.
  void set_grad(const Tensor& grad);

  /// Sum of all elements as a 0-d tensor in host memory, differentiable.
  /// Accumulated in float64, in an order that depends only on the number of
  /// elements, so the bits are the same on every device; from a GPU only the
  /// result is copied.
  Tensor sum() const;
  /// Back-propagates from a 0-d tensor: adds its derivative to the gradient of
  /// every tensor that it was computed from and that requires one, or sets it
  /// if there is none. The graph is kept until this tensor is gone, so this may
  /// be called again. Throws Error if this tensor does not require a gradient.
  void backward() const;

  /// The state shared by all handles to the tensor; null if undefined.
  const std::shared_ptr<TensorImpl>& impl() const { return impl_; }

 private:
  // The only access to what an undefined tensor does not have.
  TensorImpl& self(
      std::source_location call = std::source_location::current()) const {
    if (impl_ == nullptr) [[unlikely]]
      refuse_undefined(call);
    return *impl_;
  }

  std::shared_ptr<TensorImpl> impl_;
};

/// Throws Error naming the caller unless the tensor is defined.
inline void check_defined(
    const Tensor& tensor, const char* what = "the tensor",
    std::source_location call = std::source_location::current()) {
  if (!tensor.defined()) refuse_undefined(call, what);
}

/// Uninitialised memory. Throws Error for negative sizes, a product that
/// overflows, or if out of memory (saying how much was requested). Without a
/// device, new tensors are on `default_device()`.
Tensor empty(const Shape& shape, DType dtype = DType::float32,
             const Device& device = default_device());
/// Every element is 0; otherwise like `empty`.
Tensor zeros(const Shape& shape, DType dtype = DType::float32,
             const Device& device = default_device());
/// Every element is the value, rounded to the dtype; otherwise like `empty`.
Tensor full(const Shape& shape, double value, DType dtype = DType::float32,
            const Device& device = default_device());
/// Uninitialised memory with the shape of another tensor, and in its order of
/// dimensions if it is dense; otherwise contiguous.
Tensor empty_like(const Tensor& other);
Tensor empty_like(const Tensor& other, DType dtype);
/// Like `torch.zeros_like`; laid out like `empty_like`.
Tensor zeros_like(const Tensor& other);
/// A 0-d tensor in host memory, `torch.tensor(value)`: a number passed to a
/// launch, such as a learning rate.
Tensor tensor(double value, DType dtype = DType::float32);
/// A 1-d tensor of the given values.
Tensor tensor(const std::vector<double>& values, DType dtype = DType::float32);
/// The same; `tensor({1.0})` is a 1-d tensor with one element.
Tensor tensor(std::initializer_list<double> values,
              DType dtype = DType::float32);
/// `count` 0-d tensors, all zero, adjacent in one storage.
std::vector<Tensor> scalars(std::size_t count, DType dtype = DType::float64,
                            const Device& device = default_device());
/// A zero 0-d float64 tensor on the device of each of `tensors`; those on one
/// device are adjacent.
std::vector<Tensor> scalars_beside(const std::vector<Tensor>& tensors);
/// A tensor over host memory that the caller owns and keeps alive, in row-major
/// order; `Tensor::from_memory` takes more. `data` may have any address, even
/// one not aligned to the element.
Tensor from_blob(void* data, const Shape& shape, DType dtype = DType::float32);

/// As torch prints it: `tensor(0.0047)` for 0-d tensors, `tensor([1., 2.])`.
std::string to_string(const Tensor& tensor);
/// "[1024, 1024]".
std::string to_string(const Shape& shape);

/// True if both have the same shape, dtype and bits; any NaN equals any NaN,
/// while +0 and -0 differ. Throws Error for an undefined tensor.
bool bitwise_equal(const Tensor& a, const Tensor& b);
bool bitwise_equal(const std::vector<Tensor>& a, const std::vector<Tensor>& b);
/// `torch.allclose`: |a - b| <= atol + rtol * |b| for all elements.
bool allclose(const Tensor& a, const Tensor& b, double rtol = 1e-5,
              double atol = 1e-8);

/// Hook of the recorder: called before the data of a tensor is accessed from
/// outside, with `write` if it may change.
using AccessHook = void (*)(const TensorImpl&, bool write);
void set_access_hook(AccessHook hook);
/// The same for a gradient that its tensor releases.
using ReleaseHook = void (*)(std::shared_ptr<TensorImpl> gradient);
void set_release_hook(ReleaseHook hook);

}  // namespace fuse
