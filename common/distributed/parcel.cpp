#include "fusebook/distributed/parcel.h"

#include <algorithm>

#include "fusebook/device/backend.h"
#include "fusebook/distributed/mpi_memory.h"

namespace fuse {
namespace {

bool is_large(const Tensor& tensor) {
  return std::int64_t(tensor.nbytes()) >= Parcel::least_large;
}

bool lies_in_a_row(const Tensor& tensor) {
  return tensor.is_contiguous() && mpi_reaches(tensor.device());
}

// MPI knows nothing of the order in which a GPU works.
void wait_for_devices(const std::vector<Tensor>& tensors) {
  const Device* waited = &cpu_device;
  for (const Tensor& each : tensors) {
    const Device& device = each.device();
    if (device == *waited || !lies_in_a_row(each)) continue;
    backend_of(device).synchronize(device.index);
    waited = &device;
  }
}

std::byte* begin_of(const Tensor& tensor) {
  return static_cast<std::byte*>(tensor.address(true));
}

bool are_in_a_row(const std::vector<Tensor>& tensors) {
  const std::byte* end = nullptr;
  return std::all_of(tensors.begin(), tensors.end(), [&](const Tensor& each) {
    if (!lies_in_a_row(each)) return false;
    const std::byte* const begin = begin_of(each);
    const bool follows = end == nullptr || end == begin;
    end = begin + each.nbytes();
    return follows;
  });
}

std::size_t bytes_of(const std::vector<Tensor>& tensors) {
  std::size_t bytes = 0;
  for (const Tensor& each : tensors) bytes += each.nbytes();
  return bytes;
}

}  // namespace

Parcel::Parcel(const std::vector<Tensor>& tensors, MessageBuffer& memory) {
  std::vector<Tensor> small;
  std::vector<Tensor> copied;
  for (const Tensor& each : tensors) {
    if (each.numel() == 0) continue;
    if (!is_large(each)) {
      small.push_back(each);
    } else if (!lies_in_a_row(each)) {
      copied.push_back(each);
    }
  }
  const bool is_packed = are_in_a_row(small);
  if (!is_packed) copied.insert(copied.end(), small.begin(), small.end());
  std::byte* next = memory.parts({bytes_of(copied)})[0].data();
  const auto copy_of = [&](const Tensor& each) {
    copies_.emplace_back(each, from_blob(next, each.shape(), each.dtype()));
    next += each.nbytes();
    return next - each.nbytes();
  };
  for (const Tensor& each : tensors) {
    if (each.numel() == 0 || !is_large(each)) continue;
    stretches_.emplace_back(
        lies_in_a_row(each) ? begin_of(each) : copy_of(each), each.nbytes());
  }
  if (!small.empty()) {
    stretches_.emplace_back(is_packed ? begin_of(small.front()) : next,
                            bytes_of(small));
  }
  if (!is_packed) {
    for (const Tensor& each : small) copy_of(each);
  }
  wait_for_devices(tensors);
}

void Parcel::pack() {
  for (auto& [tensor, copy] : copies_) copy.copy_(tensor);
}

void Parcel::unpack() {
  for (auto& [tensor, copy] : copies_) tensor.copy_(copy);
}

}  // namespace fuse
