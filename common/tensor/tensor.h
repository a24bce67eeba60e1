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

/// Sizes or strides of all dimensions, the outermost first.
using Shape = std::vector<std::int64_t>;
struct ListImpl;
struct Storage;
class GradFn;
class Tensor;

/// What every handle to one tensor shares. The address of the data never
/// changes during the life of a TensorImpl.
struct TensorImpl {
  std::shared_ptr<Storage> storage;
  void* data = nullptr;
  std::int64_t numel = 0;
  DType dtype = DType::float32;
  /// See is_contiguous; known from when the strides are set.
  bool contiguous = true;
  Shape shape;
  /// Elements between neighbours of each dimension; none is negative.
  Shape strides;
  std::shared_ptr<TensorImpl> grad;
  /// How it was computed, if gradients go back from it; see autograd.h.
  std::shared_ptr<GradFn> grad_fn;
  /// Of a tensor that was not computed: whether it gets a gradient.
  bool requires_grad = false;
  /// How kernels know a 0-d tensor that they read a number from; see number_list.
  std::shared_ptr<ListImpl> as_number;
};

/// A handle to numbers in the memory of a device; copies share the data, as in
/// torch. What looks at the numbers of a tensor on a GPU copies them to the host
/// and waits for them. Any rank; rank 0 is a single number. Views see the memory of another tensor in
/// another order, or a part of it.
///
/// A tensor that was made without arguments or moved from, a gradient that is
/// not there, and a state that is not kept are undefined. They can be copied,
/// assigned and asked whether they are defined(); all else throws Error, which
/// names what was called.
///
/// Gradients go back from a number to what it was computed from: through the
/// functions of functional.h and the losses, models, views and copies, while one
/// of the tensors requires a gradient. Operations on lists, and whatever writes
/// into a tensor, leave no way back.
class Tensor {
 public:
  Tensor() = default;
  explicit Tensor(std::shared_ptr<TensorImpl> impl) : impl_(std::move(impl)) {}

  /// False for a handle to nothing, as the default constructor makes it.
  bool defined() const { return impl_ != nullptr; }
  /// The size of each dimension.
  const Shape& shape() const { return self().shape; }
  /// Elements between neighbours of each dimension.
  const Shape& strides() const { return self().strides; }
  /// True when the elements lie side by side in row-major order.
  bool is_contiguous() const;
  /// The number of dimensions.
  std::int64_t dim() const { return std::int64_t(self().shape.size()); }
  /// The number of elements.
  std::int64_t numel() const { return self().numel; }
  DType dtype() const { return self().dtype; }  ///< The type of the elements.
  Device device() const;                        ///< Where the elements lie.
  /// Bytes of all elements, without what may lie between them.
  std::size_t nbytes() const {
    const TensorImpl& own = self();
    return std::size_t(own.numel) * size_of(own.dtype);
  }

  /// Typed address of the first element; `T` is float, double, Float16 or
  /// BFloat16. Runs what a recording in progress still has to do to this tensor
  /// (a graph break). Throws Error when `T` is not the tensor's dtype, or the
  /// tensor is not in host memory.
  template <class T>
  T* data();
  template <class T>
  const T* data() const;

  /// Address of the first element on its device, whatever its dtype, to read or
  /// to write there. Runs pending work as `data` does.
  void* address(bool write) const;

  /// Address on whatever device, for binding; pending work is not run.
  void* raw_data() const { return self().data; }

  /// The value of a tensor with one element, as double. Throws Error otherwise.
  double item() const;
  /// All elements as doubles, in order.
  std::vector<double> to_vector() const;

  // Views, with the names and arguments of torch; gradients go back through
  // them. Dimensions, indices and
  // places count from the end where they are negative. All throw Error for what
  // lies outside of the tensor.

  /// Two dimensions swapped.
  Tensor transpose(std::int64_t dim0, std::int64_t dim1) const;
  /// A matrix transposed; fewer dimensions stay as they are.
  Tensor t() const;
  /// Dimension dims[k] becomes dimension k.
  Tensor permute(const Shape& dims) const;
  /// `length` places of one dimension, from `start` on.
  Tensor narrow(std::int64_t dim, std::int64_t start,
                std::int64_t length) const;
  /// One place of a dimension, which is gone then.
  Tensor select(std::int64_t dim, std::int64_t index) const;
  /// Every `step`th place of a dimension from `start` up to, not including,
  /// `end`; both are moved to the nearest place there is.
  Tensor slice(std::int64_t dim, std::int64_t start, std::int64_t end,
               std::int64_t step = 1) const;
  /// Another shape for the same elements; one size may be -1. Throws Error when
  /// this tensor is not contiguous.
  Tensor view(const Shape& shape) const;
  /// Dimensions of size 1 repeated, and new ones in front, with stride 0; -1
  /// keeps a size. Such a tensor can only be read.
  Tensor expand(const Shape& sizes) const;

  /// This tensor if it is contiguous, else a copy that is.
  Tensor contiguous() const;

  /// A copy with storage of its own; in the same order of dimensions if the
  /// elements lie side by side in some order, else contiguous.
  Tensor clone() const;
  /// This tensor, if it has that dtype, else a copy converted to it; what `grad`
  /// holds stays behind.
  Tensor to(DType dtype) const;
  /// This tensor, if it lies there, else a copy on that device. Throws Error
  /// when there is no such device.
  Tensor to(const Device& device) const;
  /// This tensor in host memory; a copy if it lies on a GPU.
  Tensor cpu() const;
  /// Overwrites the data with `source`'s, broadcast to this shape and converted
  /// to this dtype. Throws Error when it cannot be, or elements share memory.
  void copy_(const Tensor& source);
  /// Writes the value, rounded to the dtype, into every element.
  void fill_(double value);

  /// True for a tensor that gets a gradient, or that leads back to one.
  bool requires_grad() const {
    const TensorImpl& own = self();
    return own.requires_grad || own.grad_fn != nullptr;
  }
  /// Says whether `backward()` gives this tensor a gradient; parameters of
  /// models begin with true, other tensors with false. Throws Error for one that
  /// was computed from such a tensor: it leads back whatever is said.
  const Tensor& requires_grad_(bool requires_grad = true) const;
  /// The same memory, from which no gradient goes back.
  Tensor detach() const;

  /// The gradient, or an undefined tensor.
  Tensor grad() const { return Tensor(self().grad); }
  /// Assigns the gradient, of any dtype; an undefined tensor removes it. Throws
  /// Error when shape or device differ from this tensor's.
  void set_grad(const Tensor& grad);

  /// Sum of all elements as a 0-d tensor in host memory, differentiable. Added up
  /// as float64, in an order that depends on the number of elements alone, so
  /// with the same bits on every device; from a GPU comes one number.
  Tensor sum() const;
  /// Back-propagates from a 0-d tensor: adds its derivative to the gradient of
  /// every tensor that led to it and requires one, or makes that the gradient
  /// where there is none. What is needed for it stays until this tensor is gone,
  /// so it may be called again. Throws Error when nothing led to it.
  void backward() const;

  /// What all handles to the tensor share; null for an undefined one.
  const std::shared_ptr<TensorImpl>& impl() const { return impl_; }

 private:
  // The one way to what an undefined tensor does not have.
  TensorImpl& self(
      std::source_location call = std::source_location::current()) const {
    if (impl_ == nullptr) [[unlikely]]
      refuse_undefined(call);
    return *impl_;
  }

  std::shared_ptr<TensorImpl> impl_;
};

/// Throws Error that names the caller unless a tensor is defined.
inline void check_defined(
    const Tensor& tensor, const char* what = "the tensor",
    std::source_location call = std::source_location::current()) {
  if (!tensor.defined()) refuse_undefined(call, what);
}

/// Uninitialised memory. Throws Error for negative sizes, a product that
/// overflows, or memory that cannot be had (saying how much was asked for).
/// Without a device, new tensors lie on `default_device()`.
Tensor empty(const Shape& shape, DType dtype = DType::float32,
             const Device& device = default_device());
/// Every element 0; else as `empty`.
Tensor zeros(const Shape& shape, DType dtype = DType::float32,
             const Device& device = default_device());
/// Every element the value, rounded to the dtype; else as `empty`.
Tensor full(const Shape& shape, double value, DType dtype = DType::float32,
            const Device& device = default_device());
/// Uninitialised memory in the shape of another tensor, and in its order of
/// dimensions if its elements lie side by side in some order; else contiguous.
Tensor empty_like(const Tensor& other);
Tensor empty_like(const Tensor& other, DType dtype);
/// Like `torch.zeros_like`; in memory as `empty_like`.
Tensor zeros_like(const Tensor& other);
/// A 0-d tensor in host memory, `torch.tensor(value)`: a number that a launch is
/// given, such as a learning rate.
Tensor tensor(double value, DType dtype = DType::float32);
/// A 1-d tensor of the given values.
Tensor tensor(const std::vector<double>& values, DType dtype = DType::float32);
/// Likewise; `tensor({1.0})` is a 1-d tensor with one element.
Tensor tensor(std::initializer_list<double> values,
              DType dtype = DType::float32);
/// `count` 0-d tensors, zero, side by side in one storage.
std::vector<Tensor> scalars(std::size_t count, DType dtype = DType::float64,
                            const Device& device = default_device());
/// A zero 0-d float64 tensor on the device of each of `tensors`; those of one
/// device lie side by side.
std::vector<Tensor> scalars_beside(const std::vector<Tensor>& tensors);
/// A tensor over memory the caller owns and keeps alive. `data` may have any
/// address (also one that is not aligned to the element).
Tensor from_blob(void* data, const Shape& shape, DType dtype = DType::float32);

/// As torch prints it: `tensor(0.0047)` for 0-d tensors, `tensor([1., 2.])`.
std::string to_string(const Tensor& tensor);
/// "[1024, 1024]".
std::string to_string(const Shape& shape);

/// True when both have the same shape, dtype and bits; any NaN equals any NaN,
/// +0 and -0 differ. Throws Error for an undefined tensor.
bool bitwise_equal(const Tensor& a, const Tensor& b);
bool bitwise_equal(const std::vector<Tensor>& a, const std::vector<Tensor>& b);
/// `torch.allclose`: |a - b| <= atol + rtol * |b| for all elements.
bool allclose(const Tensor& a, const Tensor& b, double rtol = 1e-5,
              double atol = 1e-8);

/// Hook of the recorder: called before the data of a tensor is touched from
/// outside, with `write` when it may change.
using AccessHook = void (*)(const TensorImpl&, bool write);
void set_access_hook(AccessHook hook);
/// The same for a gradient that its tensor lets go of.
using ReleaseHook = void (*)(std::shared_ptr<TensorImpl> gradient);
void set_release_hook(ReleaseHook hook);

}  // namespace fuse
