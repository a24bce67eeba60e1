#include "fusebook/tensor/tensor.h"

#include <atomic>
#include <cstdint>
#include <map>

#include "fusebook/device/allocator.h"
#include "fusebook/ops/element.h"
#include "fusebook/support/error.h"
#include "fusebook/tensor/autograd.h"
#include "fusebook/tensor/device_copies.h"
#include "fusebook/tensor/sums_of_tensors.h"
#include "fusebook/tensor/tensor_layout.h"

namespace fuse {
namespace {

std::atomic<AccessHook> access_hook{nullptr};
std::atomic<ReleaseHook> release_hook{nullptr};

void touch(const TensorImpl& impl, bool write) {
  const AccessHook hook = access_hook.load(std::memory_order_relaxed);
  if (hook != nullptr) hook(impl, write);
}

Tensor make_tensor(std::shared_ptr<Storage> storage, void* data,
                   const Shape& shape, std::int64_t numel, DType dtype) {
  auto impl = std::make_shared<TensorImpl>();
  impl->storage = std::move(storage);
  impl->data = data;
  impl->numel = numel;
  impl->dtype = dtype;
  impl->shape = shape;
  impl->strides = row_major_strides(shape);
  return Tensor(std::move(impl));
}

// The recording may still have to read the old gradient.
void replace_grad(TensorImpl& impl, std::shared_ptr<TensorImpl> grad) {
  const ReleaseHook hook = release_hook.load(std::memory_order_relaxed);
  if (hook != nullptr && impl.grad != nullptr && impl.grad != grad) {
    hook(std::move(impl.grad));
  }
  impl.grad = std::move(grad);
}

const char* type_name(DType dtype) {
  switch (dtype) {
    case DType::float32:
      return "float";
    case DType::float64:
      return "double";
    case DType::float16:
      return "Float16";
    case DType::int16:
      return "Int16";
    default:
      return "BFloat16";
  }
}

template <class T>
void check_readable(const TensorImpl& impl) {
  if (!impl.storage->device.is_cpu()) {
    throw Error(std::string("data<") + type_name(dtype_of<T>) +
                ">() was called on a tensor on " +
                to_string(impl.storage->device) +
                ", whose memory the host cannot read; copy it with cpu()");
  }
  if (impl.dtype == dtype_of<T>) return;
  throw Error(std::string("data<") + type_name(dtype_of<T>) +
              ">() was called on a tensor of dtype " + name_of(impl.dtype));
}

}  // namespace

void set_access_hook(AccessHook hook) {
  access_hook.store(hook, std::memory_order_relaxed);
}

void set_release_hook(ReleaseHook hook) {
  release_hook.store(hook, std::memory_order_relaxed);
}

template <class T>
T* Tensor::data() {
  const TensorImpl& own = self();
  check_readable<T>(own);
  touch(own, true);
  return static_cast<T*>(own.data);
}

template <class T>
const T* Tensor::data() const {
  const TensorImpl& own = self();
  check_readable<T>(own);
  touch(own, false);
  return static_cast<const T*>(own.data);
}

template float* Tensor::data<float>();
template double* Tensor::data<double>();
template Float16* Tensor::data<Float16>();
template BFloat16* Tensor::data<BFloat16>();
template Int16* Tensor::data<Int16>();
template const float* Tensor::data<float>() const;
template const double* Tensor::data<double>() const;
template const Float16* Tensor::data<Float16>() const;
template const BFloat16* Tensor::data<BFloat16>() const;
template const Int16* Tensor::data<Int16>() const;

void* Tensor::address(bool write) const {
  const TensorImpl& own = self();
  touch(own, write);
  return own.data;
}

Device Tensor::device() const { return self().storage->device; }

double Tensor::item() const {
  const TensorImpl& own = self();
  if (own.numel != 1) {
    throw Error("item() needs a tensor with one element; this one has shape " +
                to_string(own.shape));
  }
  touch(own, false);
  if (in_blocks(own.dtype)) return to(DType::float32).item();
  const Tensor host = on_host(*this);
  return with_type(own.dtype, [&](auto type) {
    return double(load_element<decltype(type)>(host.raw_data(), 0));
  });
}

std::vector<double> Tensor::to_vector() const {
  touch(self(), false);
  if (in_blocks(dtype())) return to(DType::float32).to_vector();
  const Tensor host = on_host(contiguous());
  std::vector<double> values(static_cast<std::size_t>(numel()));
  with_type(dtype(), [&](auto type) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = double(load_element<decltype(type)>(host.raw_data(), i));
    }
  });
  return values;
}

bool Tensor::is_contiguous() const { return fuse::is_contiguous(self()); }

Tensor Tensor::contiguous() const {
  const TensorImpl& own = self();
  if (own.contiguous) return *this;
  touch(own, false);
  Tensor copy = empty(shape(), dtype(), device());
  copy_into(copy, *this);
  return passing_grad(copy, *this);
}

Tensor Tensor::clone() const {
  touch(self(), false);
  if (!is_dense(*impl_)) return contiguous();
  return passing_grad(copy_to(*this, device()), *this);
}

Tensor Tensor::to(DType dtype) const {
  const TensorImpl& own = self();
  if (dtype == own.dtype) return *this;
  touch(own, false);
  Tensor copy = empty_like(*this, dtype);
  copy.copy_(*this);
  return passing_grad(copy, *this);
}

Tensor Tensor::to(const Device& device) const {
  const TensorImpl& own = self();
  if (device == own.storage->device) return *this;
  touch(own, false);
  const Tensor dense = is_dense(*impl_) ? *this : contiguous();
  return passing_grad(copy_to(dense, device), *this);
}

Tensor Tensor::cpu() const {
  static_cast<void>(self());
  return to(cpu_device);
}

void Tensor::copy_(const Tensor& source) {
  const TensorImpl& own = self();
  check_defined(source, "the source");
  if (source.shape() != own.shape) {
    if (broadcast_shape(own.shape, source.shape()) == own.shape) {
      return copy_(source.detach().expand(own.shape));
    }
    throw Error("copy_: a tensor of shape " + to_string(source.shape()) +
                " cannot be copied into one of shape " + to_string(shape()));
  }
  check_storable(*impl_, "copy_");
  touch(*source.impl_, false);
  touch(*impl_, true);
  if (numel() == 0) return;
  copy_into(*this, source);
}

void Tensor::fill_(double value) {
  check_storable(self(), "fill_");
  touch(*impl_, true);
  fill_elements(*this, value);
}

const Tensor& Tensor::requires_grad_(bool requires_grad) const {
  if (self().grad_fn != nullptr) {
    throw Error(
        "requires_grad_: this tensor was computed from others that require a "
        "gradient; call it on detach() instead");
  }
  impl_->requires_grad = requires_grad;
  return *this;
}

Tensor Tensor::detach() const { return Tensor(bare(self())); }

void Tensor::set_grad(const Tensor& grad) {
  TensorImpl& own = self();
  if (!grad.defined()) return replace_grad(own, nullptr);
  if (grad.shape() != shape()) {
    throw Error("a gradient of shape " + to_string(grad.shape()) +
                " does not fit a tensor of shape " + to_string(shape()));
  }
  if (grad.device() != device()) {
    throw Error("a gradient on " + to_string(grad.device()) +
                " does not fit a tensor on " + to_string(device()));
  }
  // A gradient must never refer back to its tensor, itself or through its graph:
  // the cycle would leak both.
  const bool plain = grad.impl_ != impl_ && grad.impl_->grad == nullptr &&
                     grad.impl_->grad_fn == nullptr;
  replace_grad(own, plain ? grad.impl_ : bare(*grad.impl_));
}

Tensor Tensor::sum() const {
  touch(self(), false);
  if (in_blocks(dtype())) return to(DType::float32).sum();
  const Tensor result = tensor(sum_of(*this), dtype());
  return with_grad(result, {*this},
                   [shape = shape(), dtype = dtype(),
                    device = device()](const Tensor& grad) -> Grads {
                     return {full(shape, grad.item(), dtype, device)};
                   });
}

void Tensor::backward() const {
  if (!self().shape.empty()) {
    throw Error(
        "backward() starts from a 0-d tensor; this tensor has "
        "shape " +
        to_string(shape()) + ": call sum() first");
  }
  if (!requires_grad()) {
    throw Error(
        "backward() needs a tensor that requires a gradient; call it on the "
        "sum() of a model's output");
  }
  run_backward(*this, tensor(1.0, dtype()));
}

Tensor empty(const Shape& shape, DType dtype, const Device& device) {
  const std::int64_t numel = checked_numel(shape, dtype);
  auto storage = allocate_storage(bytes_of(dtype, numel), device);
  void* data = storage->data;
  return make_tensor(std::move(storage), data, shape, numel, dtype);
}

Tensor zeros(const Shape& shape, DType dtype, const Device& device) {
  return full(shape, 0, dtype, device);
}

Tensor full(const Shape& shape, double value, DType dtype,
            const Device& device) {
  const Tensor result = empty(shape, dtype, device);
  fill_elements(result, value);  // nothing else refers to it yet
  return result;
}

Tensor empty_like(const Tensor& other) {
  check_defined(other);
  return empty_like(other, other.dtype());
}

Tensor empty_like(const Tensor& other, DType dtype) {
  check_defined(other);
  Tensor result = empty(other.shape(), dtype, other.device());
  if (!in_blocks(dtype) && is_dense(*other.impl())) {
    set_strides(*result.impl(), other.strides());
  }
  return result;
}

Tensor zeros_like(const Tensor& other) {
  check_defined(other);
  Tensor result = empty_like(other);
  result.fill_(0);
  return result;
}

Tensor tensor(double value, DType dtype) {
  return full({}, value, dtype, cpu_device);
}

Tensor tensor(const std::vector<double>& values, DType dtype) {
  Tensor result = empty({std::int64_t(values.size())}, dtype, cpu_device);
  with_type(dtype, [&](auto type) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      store_element(result.raw_data(), i,
                    static_cast<decltype(type)>(values[i]));
    }
  });
  return result.to(default_device());
}

Tensor tensor(std::initializer_list<double> values, DType dtype) {
  return tensor(std::vector<double>(values), dtype);
}

std::vector<Tensor> scalars(std::size_t count, DType dtype,
                            const Device& device) {
  check_numbers("scalars", dtype);
  const Tensor all = zeros({std::int64_t(count)}, dtype, device);
  std::vector<Tensor> views;
  views.reserve(count);
  char* data = static_cast<char*>(all.raw_data());
  for (std::size_t i = 0; i < count; ++i) {
    views.push_back(make_tensor(all.impl()->storage, data + i * size_of(dtype),
                                {}, 1, dtype));
  }
  return views;
}

std::vector<Tensor> scalars_beside(const std::vector<Tensor>& tensors) {
  std::map<std::uint8_t, std::vector<std::size_t>> of_device;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    check_defined(tensors[i], "one of the tensors");
    of_device[memory_code(tensors[i].device())].push_back(i);
  }
  std::vector<Tensor> all(tensors.size());
  for (const auto& [code, places] : of_device) {
    const auto numbers =
        scalars(places.size(), DType::float64, device_of_memory(code));
    for (std::size_t k = 0; k < places.size(); ++k) all[places[k]] = numbers[k];
  }
  return all;
}

Tensor from_blob(void* data, const Shape& shape, DType dtype) {
  const std::int64_t numel = checked_numel(shape, dtype);
  if (data == nullptr && numel > 0) {
    throw Error("from_blob: a null address for a tensor of shape " +
                to_string(shape));
  }
  const std::size_t bytes = bytes_of(dtype, numel);
  return make_tensor(std::make_shared<Storage>(data, bytes, false), data, shape,
                     numel, dtype);
}

}  // namespace fuse
