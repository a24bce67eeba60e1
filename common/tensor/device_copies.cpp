#include "fusebook/tensor/device_copies.h"

#include <cmath>
#include <source_location>

#include "fusebook/device/allocator.h"
#include "fusebook/device/backend.h"
#include "fusebook/device/run_at_once.h"
#include "fusebook/tensor/host_copies.h"
#include "fusebook/tensor/tensor_layout.h"
#include "fusebook/tensor/tensor_list.h"

namespace fuse {
namespace {

bool on_the_host(const Tensor& tensor) { return tensor.device().is_cpu(); }

// Uninitialised, with the shape and the strides of `model`.
Tensor room_like(const Tensor& model, const Device& device) {
  auto impl = bare(*model.impl());
  impl->storage = allocate_storage(extent_bytes(*model.impl()), device);
  impl->data = impl->storage->data;
  return Tensor(std::move(impl));
}

// Both are dense in the same order, on two devices, with the same dtype.
void transfer(const Tensor& target, const Tensor& source) {
  if (on_the_host(target)) {
    const Device from = source.device();
    backend_of(from).copy_to_host(from.index, target.raw_data(),
                                  source.raw_data(), source.nbytes());
  } else {
    const Tensor host = on_host(source);
    const Device to = target.device();
    backend_of(to).copy_to_device(to.index, target.raw_data(), host.raw_data(),
                                  host.nbytes());
  }
}

// One operation on one device: target = source, converted.
void run_copy(const Tensor& target, const Tensor& source) {
  const TensorList from({source});
  const TensorList to({target});
  const auto here = std::source_location::current();
  Program program;
  const auto read = program.slot(from.impl()->view(), from.impl()->info());
  const auto written = program.slot(to.impl()->view(), to.impl()->info());
  program.store(written, program.load(read, here), here);
  run_at_once(program);
}

void copy_within(const Tensor& target, const Tensor& source) {
  if (share_bytes(*target.impl(), *source.impl())) {
    return copy_within(target, source.clone());
  }
  const bool plain = target.dtype() == source.dtype() &&
                     target.is_contiguous() && source.is_contiguous();
  if (plain) {
    const Device device = target.device();
    backend_of(device).copy_within(device.index, target.raw_data(),
                                   source.raw_data(), target.nbytes());
  } else {
    run_copy(target, source);
  }
}

bool is_zero(double value) { return value == 0 && !std::signbit(value); }

}  // namespace

Tensor on_host(const Tensor& tensor) {
  if (on_the_host(tensor)) return tensor;
  return copy_to(tensor, cpu_device);
}

Tensor copy_to(const Tensor& tensor, const Device& device) {
  const Tensor copy = room_like(tensor, device);
  if (tensor.device() == device) {
    backend_of(device).copy_within(device.index, copy.raw_data(),
                                   tensor.raw_data(), tensor.nbytes());
  } else {
    transfer(copy, tensor);
  }
  return copy;
}

void copy_into(const Tensor& target, const Tensor& source) {
  if (target.device() == source.device()) {
    if (on_the_host(target))
      return copy_on_host(*target.impl(), *source.impl());
    return copy_within(target, source);
  }
  const bool narrows = size_of(target.dtype()) < size_of(source.dtype());
  const DType dtype = narrows ? target.dtype() : source.dtype();
  const Tensor sent = source.to(dtype).contiguous();
  if (target.is_contiguous() && target.dtype() == dtype) {
    transfer(target, sent);
  } else {
    Tensor(target).copy_(copy_to(sent, target.device()));
  }
}

void fill_elements(const Tensor& target, double value) {
  if (target.numel() == 0) return;
  if (on_the_host(target)) return fill_on_host(*target.impl(), value);
  // A block of zeros has a scale, too.
  const bool plain = is_dense(*target.impl()) && !in_blocks(target.dtype());
  if (is_zero(value) && plain) {
    const Device device = target.device();
    backend_of(device).fill_bytes(device.index, target.raw_data(), 0,
                                  target.nbytes());
    return;
  }
  const TensorList list({target});
  const auto here = std::source_location::current();
  Program program;
  const auto slot = program.slot(list.impl()->view(), list.impl()->info());
  program.store(slot, program.argument(value, {}), here);
  run_at_once(program);
}

}  // namespace fuse
