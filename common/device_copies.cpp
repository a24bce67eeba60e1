#include "device_copies.h"

#include "allocator.h"
#include "devices.h"
#include "tensor_layout.h"

namespace fuse {
namespace {

std::shared_ptr<Gpu> gpu_with(const Tensor& tensor) {
  return gpu_of(tensor.device());
}

// Uninitialised, with the shape and the strides of `model`.
Tensor room_like(const Tensor& model, const Device& device) {
  auto impl = std::make_shared<TensorImpl>(*model.impl());
  impl->storage = allocate_storage(extent_bytes(*model.impl()), device);
  impl->data = impl->storage->data;
  impl->grad.reset();
  impl->grad_fn.reset();
  return Tensor(std::move(impl));
}

// Host memory for what is to be written over all of a tensor: only what lies
// between its elements has to be fetched.
Tensor host_room(const Tensor& target) {
  const bool gaps = extent_bytes(*target.impl()) != target.nbytes();
  return gaps ? on_host(target) : room_like(target, cpu_device);
}

}  // namespace

Tensor on_host(const Tensor& tensor) {
  if (tensor.device().is_cpu()) return tensor;
  Tensor host = room_like(tensor, cpu_device);
  gpu_with(tensor)->copy_to_host(host.raw_data(), tensor.raw_data(),
                                 extent_bytes(*tensor.impl()));
  return host;
}

void write_back(const Tensor& tensor, const Tensor& host) {
  gpu_with(tensor)->copy_to_device(tensor.raw_data(), host.raw_data(),
                                   extent_bytes(*tensor.impl()));
}

Tensor copy_to(const Tensor& tensor, const Device& device) {
  if (device.is_cpu()) return on_host(tensor);
  Tensor copy = room_like(tensor, device);
  const std::size_t bytes = extent_bytes(*tensor.impl());
  if (tensor.device() == device) {
    gpu_of(device)->copy_on_device(copy.raw_data(), tensor.raw_data(), bytes);
  } else {
    gpu_of(device)->copy_to_device(copy.raw_data(), on_host(tensor).raw_data(),
                                   bytes);
  }
  return copy;
}

void copy_across(const Tensor& target, const Tensor& source) {
  const bool plain = target.dtype() == source.dtype() &&
                     target.is_contiguous() && source.is_contiguous();
  const bool same_device = target.device() == source.device();
  if (plain && same_device && share_bytes(*target.impl(), *source.impl())) {
    copy_across(target, source.clone());  // a device copies nothing onto itself
  } else if (plain && same_device) {
    gpu_with(target)->copy_on_device(target.raw_data(), source.raw_data(),
                                     target.nbytes());
  } else if (target.device().is_cpu()) {
    Tensor(target).copy_(on_host(source));
  } else if (plain) {
    write_back(target, on_host(source));
  } else {
    Tensor host = host_room(target);
    host.copy_(on_host(source));
    write_back(target, host);
  }
}

void fill_on_device(const Tensor& target, double value) {
  if (target.numel() == 0) return;
  const std::size_t bytes = extent_bytes(*target.impl());
  const bool zero = value == 0 && 1 / value > 0;
  if (zero && bytes == target.nbytes()) {
    gpu_with(target)->fill_bytes(target.raw_data(), 0, bytes);
    return;
  }
  Tensor host = host_room(target);
  host.fill_(value);
  write_back(target, host);
}

}  // namespace fuse
