#pragma once

#include <ATen/ATen.h>
#include <torch/csrc/autograd/variable.h>
#if __has_include(<c10/core/impl/COW.h>)
#include <c10/core/impl/COW.h>
#endif

#include <cstddef>
#include <cstdint>

namespace fuse::libtorch::detail {

// A parameter, its gradient and their storages are objects of their own, scattered
// over memory. Who looks at thousands has no time to wait for each, or to ask each
// by a call.

/// Begins to bring near what is looked at soon.
inline void fetch(const void* address, std::size_t bytes = 1) {
  const char* const first = static_cast<const char*>(address);
  for (std::size_t i = 0; i < bytes; i += 64) __builtin_prefetch(first + i);
  __builtin_prefetch(first + bytes - 1);  // objects begin anywhere in a line
}

inline void fetch(const c10::TensorImpl* tensor) {
  fetch(tensor, sizeof(c10::TensorImpl));
}

/// As far as the address of the elements.
inline void fetch(const c10::StorageImpl* storage) {
  fetch(storage, sizeof(c10::intrusive_ptr_target) + sizeof(at::DataPtr));
}

/// The storage of a tensor, or null.
inline const c10::StorageImpl* storage_of(const c10::TensorImpl& tensor) {
  return tensor.unsafe_storage().unsafeGetStorageImpl();
}

/// Where a tensor keeps its gradient, or null.
inline const at::Tensor* grad_place(const c10::TensorImpl& tensor) {
  const auto* const meta = static_cast<const ::torch::autograd::AutogradMeta*>(
      tensor.autograd_meta());
  return meta == nullptr ? nullptr : &meta->grad_;
}

/// Where the elements begin, of so many bytes each; null if there are none.
inline const void* data_of(const c10::TensorImpl& tensor, std::size_t size) {
  const c10::StorageImpl* const storage = storage_of(tensor);
  const void* const first = storage == nullptr ? nullptr : storage->data();
  if (first == nullptr) return nullptr;
  return static_cast<const char*>(first) +
         std::int64_t(size) * tensor.storage_offset();
}

/// True if others share the elements until someone writes, which has to be said
/// before.
inline bool is_lazy_copy(const c10::TensorImpl& tensor) {
#if __has_include(<c10/core/impl/COW.h>)
  const c10::StorageImpl* const storage = storage_of(tensor);
  return storage != nullptr &&
         c10::impl::cow::is_cow_data_ptr(storage->data_ptr());
#else
  static_cast<void>(tensor);
  return false;
#endif
}

}  // namespace fuse::libtorch::detail
