#include "fusebook/optim_base/batch_memory.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "fusebook/tensor/tensor_layout.h"

namespace fuse {
namespace {

// Returns the number of bytes added.
std::uintptr_t add_memory(const TensorList& tensors, StoredMemory& to) {
  const ListImpl& list = *tensors.impl();
  std::uintptr_t bytes = 0;
  for (std::size_t i = 0; i < list.count; ++i) {
    const auto begin = reinterpret_cast<std::uintptr_t>(list.addresses[i]);
    to.add(begin, begin + list.extent_bytes(i));
    bytes += list.extent_bytes(i);
  }
  return bytes;
}

}  // namespace

bool BatchMemory::are_apart(std::span<const JoinedBatch> batches) {
  stored_.clear();
  std::uintptr_t bytes = 0;
  for (const JoinedBatch& each : batches) {
    bytes += add_memory(each.batch.params, stored_);
    bytes += add_memory(each.batch.steps, stored_);
    bytes += add_memory(each.batch.masters, stored_);
    bytes += add_memory(each.batch.low_halves, stored_);
    for (const TensorList& states : each.batch.states) {
      bytes += add_memory(states, stored_);
    }
  }
  stored_.settle();
  return stored_.bytes() == bytes &&
         std::none_of(
             batches.begin(), batches.end(), [&](const JoinedBatch& each) {
               return touches(each.batch.grads) || touches(each.numbers);
             });
}

bool BatchMemory::touches(const TensorList& list) {
  const ListImpl& own = *list.impl();
  for (std::size_t i = 0; i < own.count; ++i) {
    const auto begin = reinterpret_cast<std::uintptr_t>(own.addresses[i]);
    if (stored_.touches(begin, begin + own.extent_bytes(i))) return true;
  }
  return false;
}

bool BatchMemory::touches(const JoinedNumbers& numbers) {
  return numbers.any_tensor([&](const TensorImpl& tensor) {
    const auto begin = reinterpret_cast<std::uintptr_t>(tensor.data);
    return stored_.touches(begin, begin + extent_bytes(tensor));
  });
}

}  // namespace fuse
