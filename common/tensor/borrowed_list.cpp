#include "fusebook/tensor/borrowed_list.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "fusebook/device/allocator.h"
#include "fusebook/device/backend.h"
#include "fusebook/support/call_place.h"
#include "fusebook/support/error.h"
#include "fusebook/tensor/kept_gradients.h"
#include "fusebook/tensor/list_registry.h"
#include "fusebook/tensor/tensor_layout.h"
#include "fusebook/tensor/tracer.h"

namespace fuse {
namespace {

// Everything of a list except its addresses and strides, in the dtype of its
// owners.
std::shared_ptr<ListImpl> list_over(const std::shared_ptr<ListImpl>& owners,
                                    const char* label, bool gradients) {
  auto list = std::make_shared<ListImpl>();
  list->owners = owners;
  list->gradients = gradients;
  list->label = label;
  list->count = owners->count;
  list->dtype = owners->dtype;
  list->rate = owners->rate;
  list->device = owners->device;
  list->numels = owners->numels;
  list->shape_hash = owners->shape_hash;
  return list;
}

// Copies the strides: the tensors may be gone before the list is.
void take_strides(ListImpl& list, const std::vector<const TensorImpl*>& from) {
  for (const TensorImpl* tensor : from) {
    list.strides.insert(list.strides.end(), tensor->strides.begin(),
                        tensor->strides.end());
  }
  const std::int64_t* next = list.strides.data();
  for (std::size_t i = 0; i < list.count; ++i) {
    const Shape& sizes = list.models()[i].shape();
    list.layouts.push_back({sizes.data(), next, sizes.size()});
    next += sizes.size();
  }
}

void take_places(ListImpl& list, const std::vector<const TensorImpl*>& from) {
  const bool strided =
      std::any_of(from.begin(), from.end(),
                  [](const TensorImpl* each) { return !each->contiguous; });
  if (strided) take_strides(list, from);
  list.find_place();
  list.content_hash = content_of(list);
  list_registry().add(list);
}

bool fits(const ListImpl& list, std::size_t i, const TensorImpl& gradient) {
  if (gradient.dtype != list.dtype) return false;
  if (gradient.numel != list.numels[i]) return false;
  if (list.layouts.empty()) return gradient.contiguous;
  const Layout& layout = list.layouts[i];
  return std::equal(gradient.strides.begin(), gradient.strides.end(),
                    layout.strides, layout.strides + layout.rank);
}

std::string kind_of(const TensorImpl& tensor) {
  return "shape " + to_string(tensor.shape) + " on " +
         to_string(tensor.storage->device);
}

// The checks of set_grad, for gradients that came in another way.
void check_gradient(const ListImpl& params, std::size_t i) {
  const TensorImpl& param = *params.tensors[i].impl();
  const TensorImpl& gradient = *param.grad;
  if (gradient.shape == param.shape &&
      gradient.storage->device == param.storage->device) {
    return;
  }
  throw Error(fmt::format(
      "the gradient of {} has {}, but the parameter has {}{}; set it with "
      "set_grad, which checks that it fits",
      params.name(i), kind_of(gradient), kind_of(param), at_call()));
}

void put(ListImpl& list, std::size_t i, void* address) {
  const auto distance = reinterpret_cast<std::uintptr_t>(address) -
                        reinterpret_cast<std::uintptr_t>(list.addresses[i]);
  list.content_hash += distance * place_factor(i);
  list.addresses[i] = address;
}

void settle(ListImpl& list, std::uint64_t old_content) {
  list.tensors.clear();
  list.broadcasts.clear();
  list.find_place();
  list_registry().move(list, old_content);
}

// Copies a list that is in use elsewhere.
std::shared_ptr<ListImpl> copy_of(const ListImpl& list) {
  auto copy = list_over(list.owners, list.label.c_str(), list.gradients);
  copy->dtype = list.dtype;
  copy->addresses = list.addresses;
  copy->strides = list.strides;
  copy->layouts = list.layouts;
  for (Layout& layout : copy->layouts) {
    layout.strides =
        copy->strides.data() + (layout.strides - list.strides.data());
  }
  copy->content_hash = list.content_hash;
  list_registry().add(*copy);
  return copy;
}

Tensor borrow(const Tensor& model, void* address, DType dtype) {
  auto impl = bare(*model.impl());
  impl->data = address;
  impl->dtype = dtype;
  impl->storage =
      std::make_shared<Storage>(address, extent_bytes(*impl), false);
  impl->storage->device = model.device();
  return Tensor(std::move(impl));
}

// A backward pass may put new gradients anywhere. Prefetching a few tensors
// ahead hides the latency.
void fetch_ahead(const std::vector<Tensor>& params, std::size_t i) {
  constexpr std::size_t ahead = 16;
  if (i + 2 * ahead < params.size()) {
    __builtin_prefetch(&params[i + 2 * ahead].impl()->grad);
  }
  if (i + ahead < params.size()) {
    __builtin_prefetch(params[i + ahead].impl()->grad.get());
  }
}

bool is_recorded(const ListImpl& list) {
  const Tracer* const recorder = Tracer::current();
  return recorder != nullptr && recorder->uses(list);
}

// Points a list to the address that `find(list, i, address)` gives for each tensor;
// if it returns false, the list can no longer be used. It is in use elsewhere if it
// was recorded or there are more than so many handles. This is done for every tensor
// in every step, so `find` is an object whose call can be inlined.
template <class Find>
Change follow(TensorList& handle, Find find, int handles = 1) {
  std::shared_ptr<ListImpl> list = handle.impl();
  const std::uint64_t old_content = list->content_hash;
  Change change = Change::none;
  for (std::size_t i = 0; i < list->count; ++i) {
    void* address = nullptr;
    if (!find(*list, i, address)) {
      if (change == Change::moved) settle(*list, old_content);
      return Change::other;
    }
    if (address == list->addresses[i]) continue;
    if (change == Change::none &&
        (list.use_count() > handles + 1 || is_recorded(*list))) {
      list = copy_of(*list);
    }
    change = Change::moved;
    put(*list, i, address);
  }
  if (change == Change::none) return change;
  settle(*list, old_content);
  if (list != handle.impl()) handle = TensorList(std::move(list));
  return change;
}

struct CurrentGradient {
  bool operator()(const ListImpl& list, std::size_t i, void*& address) const {
    const std::vector<Tensor>& params = list.owners->tensors;
    fetch_ahead(params, i);
    const TensorImpl* const gradient = params[i].impl()->grad.get();
    if (gradient == nullptr || !fits(list, i, *gradient)) return false;
    address = gradient->data;
    return true;
  }
};

void check_addresses(const ListImpl& list, std::span<void* const> addresses,
                     const std::string& call) {
  if (addresses.size() != list.count) {
    throw Error(
        fmt::format("{}: expected {} addresses, one per tensor, but got {}{}",
                    call, list.count, addresses.size(), at_call()));
  }
  const std::size_t alignment =
      backend_of(list.device).alignment(size_of(list.dtype));
  for (std::size_t i = 0; i < list.count; ++i) {
    if (list.numels[i] == 0) continue;
    const auto address = reinterpret_cast<std::uintptr_t>(addresses[i]);
    if (address != 0 && address % alignment == 0) continue;
    throw Error(call + ": the address of " + list.name(i) +
                (address == 0 ? " is null"
                              : " is not aligned to the size of its elements, "
                                "as a GPU requires") +
                at_call());
  }
}

}  // namespace

TensorList gradient_list(const TensorList& params, const char* label) {
  auto list = list_over(params.impl(), label, true);
  std::vector<const TensorImpl*> gradients;
  gradients.reserve(list->count);
  for (std::size_t i = 0; i < list->count; ++i) {
    const Tensor& param = params[i];
    check_gradient(*params.impl(), i);
    gradients.push_back(param.impl()->grad.get());
    list->addresses.push_back(gradients.back()->data);
  }
  if (list->count > 0) list->dtype = gradients[0]->dtype;
  take_places(*list, gradients);
  keep_gradients(list);
  return TensorList(std::move(list));
}

Change follow_gradients(TensorList& grads) {
  return follow(grads, CurrentGradient());
}

Change follow_kept_gradients(TensorList& grads) {
  return follow(grads, CurrentGradient(), 2);
}

void follow_addresses(TensorList& grads, std::span<void* const> addresses) {
  check_addresses(*grads.impl(), addresses, "step");
  follow(grads, [&](const ListImpl&, std::size_t i, void*& address) {
    address = addresses[i];
    return true;
  });
}

TensorList foreign_list(const TensorList& shapes,
                        std::span<void* const> addresses, const char* label,
                        const std::string& call, DType dtype) {
  auto list = list_over(shapes.impl(), label, false);
  list->dtype = dtype;
  check_addresses(*list, addresses, call);
  list->addresses.assign(addresses.begin(), addresses.end());
  std::vector<const TensorImpl*> models;
  for (const Tensor& model : shapes) models.push_back(model.impl().get());
  take_places(*list, models);
  return TensorList(std::move(list));
}

TensorList position_list(const TensorList& shapes,
                         std::span<const std::int64_t> first,
                         const char* label) {
  auto list = list_over(shapes.impl(), label, false);
  list->dtype = DType::position;
  for (const std::int64_t place : first) {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): kernels count from there.
    list->addresses.push_back(reinterpret_cast<void*>(place));
  }
  list->content_hash = content_of(*list);
  list_registry().add(*list);
  return TensorList(std::move(list));
}

void put_elsewhere(ListImpl& list, std::span<void* const> addresses) {
  check_addresses(list, addresses, "rebind");
  const std::uint64_t old_content = list.content_hash;
  bool moved = false;
  for (std::size_t i = 0; i < list.count; ++i) {
    if (addresses[i] == list.addresses[i]) continue;
    put(list, i, addresses[i]);
    moved = true;
  }
  if (moved) settle(list, old_content);
}

std::vector<Tensor> places_of(const ListImpl& list) {
  std::vector<Tensor> tensors;
  tensors.reserve(list.count);
  for (std::size_t i = 0; i < list.count; ++i) {
    const Shape& shape = list.models()[i].shape();
    Tensor place = borrow(list.models()[i], list.addresses[i], list.dtype);
    set_strides(*place.impl(),
                list.layouts.empty()
                    ? row_major_strides(shape)
                    : Shape(list.layouts[i].strides,
                            list.layouts[i].strides + shape.size()));
    tensors.push_back(std::move(place));
  }
  return tensors;
}

std::vector<Tensor> borrowed(const ListImpl& list) {
  std::vector<Tensor> tensors;
  tensors.reserve(list.count);
  for (std::size_t i = 0; i < list.count; ++i) {
    const Tensor& model = list.models()[i];
    if (!list.gradients) {
      tensors.push_back(borrow(model, list.addresses[i], list.dtype));
      continue;
    }
    const Tensor gradient = model.grad();
    if (!gradient.defined() || gradient.raw_data() != list.addresses[i]) {
      throw Error(list.name(i) +
                  " has been replaced since this list of gradients was made; "
                  "to keep gradients, make a list of the tensors");
    }
    tensors.push_back(gradient);
  }
  return tensors;
}

}  // namespace fuse
