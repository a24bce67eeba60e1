#pragma once

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "fusebook/libtorch/raw_tensor.h"
#include "fusebook/libtorch/view.h"
#include "fusebook/runtime/parallel.h"
#include "fusebook/support/error.h"
#include "fusebook/tensor/move_tensors.h"
#include "fusebook/tensor/tensor_layout.h"

namespace fuse::libtorch::detail {

/// The parameters of an optimizer, and how each was when it was looked at closely:
/// a step compares them, and looks closely only at what differs.
class Params {
 public:
  /// Takes the parameters of all groups; those that were here keep their tensors.
  /// Throws Error, and changes nothing, for one that cannot be stepped.
  void set(const std::vector<const std::vector<at::Tensor>*>& groups);
  /// True if these are the parameters of before, in the same groups.
  bool are(const std::vector<const std::vector<at::Tensor>*>& groups) const;

  /// Finds every gradient. Takes notice of parameters whose elements have moved.
  /// Throws Error for what cannot be stepped; then nothing has changed. Meanwhile
  /// another thread may call `beside`, which must not throw.
  template <class Beside>
  void collect(Beside beside);

  std::size_t size() const { return all_.size(); }
  const at::Tensor& object(std::size_t i) const { return all_[i].object; }
  const Tensor& tensor(std::size_t i) const { return all_[i].tensor; }
  std::size_t group_of(std::size_t i) const;
  std::vector<Tensor> group(std::size_t g) const;
  /// Where the gradients are, as `Optimizer::step` takes it.
  const std::vector<const void*>& addresses() const { return addresses_; }
  bool has_gradient(std::size_t i) const { return addresses_[i] != nullptr; }
  /// True if addresses do not tell all: a gradient has another dtype or other
  /// strides than its parameter. Then `gradients` are needed.
  bool need_gradients() const { return need_gradients_; }
  std::vector<Tensor> gradients() const;
  /// "parameter 3 of group 0".
  std::string name_of(std::size_t i) const;
  /// Tells LibTorch that parameters with gradients have been written; `beside` as
  /// above.
  template <class Beside>
  void note_writes(Beside beside) const;

 private:
  struct Param {
    at::Tensor object;
    Tensor tensor;
    c10::TensorImpl* impl;
    const void* data;
    c10::DispatchKeySet keys;
    caffe2::TypeMeta dtype;
    std::size_t item_size;
    std::size_t first;  // of its sizes in numbers_; its strides follow
    std::size_t dims;
  };

  static constexpr std::size_t together = 32;
  static constexpr char unclear = 0;  // its address: look closely

  static Param bound(const at::Tensor& object, const std::string& name);
  void number(Param& param);
  bool has_form(const Param& param, const c10::TensorImpl& impl) const;
  bool is_where_it_was(const Param& param) const;
  template <class Call, class Beside>
  void share_out(Call call, Beside beside) const;
  const void* clear_address(const Param& param, const at::Tensor* grad) const;
  void collect_some(std::size_t first, std::size_t count);
  void collect_closely(std::size_t i, std::vector<Move>& moves);
  void look_closely(std::size_t i, std::vector<Move>& moves) const;
  const void* address_of(std::size_t i, const at::Tensor& grad);
  template <class Beside>
  void collect_once(std::vector<Move>& moves, Beside beside);
  std::string grad_name(std::size_t i) const {
    return "the gradient of " + name_of(i);
  }

  std::vector<Param> all_;
  std::vector<std::int64_t> numbers_;
  std::vector<std::size_t> sizes_;  // parameters in each group
  std::vector<const void*> addresses_;
  bool need_gradients_ = false;
};

inline Params::Param Params::bound(const at::Tensor& object,
                                   const std::string& name) {
  const Tensor tensor = view_of(name, object);
  check_storable(*tensor.impl(), name.c_str());
  c10::TensorImpl* const impl = object.unsafeGetTensorImpl();
  if (impl->is_inference()) {
    refuse(name, "it was made in inference mode, and may not be written");
  }
  object.data_ptr();  // may be written from now on
  const std::size_t item_size = object.element_size();
  return {object,
          tensor,
          impl,
          data_of(*impl, item_size),
          impl->key_set(),
          impl->dtype(),
          item_size,
          0,
          std::size_t(object.dim())};
}

inline void Params::number(Param& param) {
  param.first = numbers_.size();
  for (const auto part : {param.impl->sizes(), param.impl->strides()}) {
    numbers_.insert(numbers_.end(), part.begin(), part.end());
  }
}

inline void Params::set(
    const std::vector<const std::vector<at::Tensor>*>& groups) {
  // With those of this call: one that is listed twice is one tensor of ours, too.
  std::unordered_map<const c10::TensorImpl*, Param> known;
  for (const Param& each : all_) known.emplace(each.impl, each);
  std::vector<Param> all;
  std::vector<std::size_t> sizes;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    sizes.push_back(groups[g]->size());
    for (std::size_t k = 0; k < groups[g]->size(); ++k) {
      const at::Tensor& object = (*groups[g])[k];
      const auto* const impl = object.unsafeGetTensorImpl();
      if (!known.contains(impl)) {
        known.emplace(
            impl, bound(object, c10::str("parameter ", k, " of group ", g)));
      }
      all.push_back(known.at(impl));
    }
  }
  all_ = std::move(all);
  sizes_ = std::move(sizes);
  numbers_.clear();
  for (Param& each : all_) number(each);
  addresses_.assign(all_.size(), nullptr);
}

inline bool Params::are(
    const std::vector<const std::vector<at::Tensor>*>& groups) const {
  if (groups.size() != sizes_.size()) return false;
  std::size_t next = 0;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    if (groups[g]->size() != sizes_[g]) return false;
    for (const at::Tensor& each : *groups[g]) {
      if (each.unsafeGetTensorImpl() != all_[next++].impl) return false;
    }
  }
  return true;
}

inline std::size_t Params::group_of(std::size_t i) const {
  std::size_t group = 0;
  for (std::size_t end = sizes_[0]; end <= i; end += sizes_[++group]) {
  }
  return group;
}

inline std::vector<Tensor> Params::group(std::size_t g) const {
  std::size_t first = 0;
  for (std::size_t before = 0; before < g; ++before) first += sizes_[before];
  std::vector<Tensor> found;
  for (std::size_t i = first; i < first + sizes_[g]; ++i) {
    found.push_back(all_[i].tensor);
  }
  return found;
}

inline std::string Params::name_of(std::size_t i) const {
  const std::size_t group = group_of(i);
  for (std::size_t g = 0; g < group; ++g) i -= sizes_[g];
  return c10::str("parameter ", i, " of group ", group);
}

inline bool Params::has_form(const Param& param,
                             const c10::TensorImpl& impl) const {
  if (impl.key_set() != param.keys || impl.dtype() != param.dtype) return false;
  const auto sizes = impl.sizes();
  const auto strides = impl.strides();
  if (sizes.size() != param.dims) return false;
  const std::int64_t* const own = numbers_.data() + param.first;
  for (std::size_t d = 0; d < param.dims; ++d) {
    if (sizes[d] != own[d] || strides[d] != own[param.dims + d]) return false;
  }
  return true;
}

inline bool Params::is_where_it_was(const Param& param) const {
  return has_form(param, *param.impl) &&
         data_of(*param.impl, param.item_size) == param.data &&
         !is_lazy_copy(*param.impl);
}

// Calls beside(), and call(first, count) for some parameters after the others, by
// several threads if there are so many that it pays. Each thread gets what it had
// in the step before, and has it near.
template <class Call, class Beside>
void Params::share_out(Call call, Beside beside) const {
  constexpr std::size_t worth_a_thread = 256;
  const std::size_t size = all_.size();
  const auto parts = std::clamp<std::size_t>(size / worth_a_thread, 1,
                                             std::size_t(thread_count()));
  // What is beside takes as long as half of the parameters.
  const std::size_t each = (size + size / 2) / parts;
  parallel_run(int(parts), [&](int part) {
    const bool last = std::size_t(part) + 1 == parts;
    const std::size_t begin = std::min(size, std::size_t(part) * each);
    const std::size_t end = last ? size : std::min(size, begin + each);
    if (last) beside();
    for (std::size_t i = begin; i < end; i += together) {
      call(i, std::min(together, end - i));
    }
  });
}

// The address of a gradient, null if there is none, or `unclear`.
inline const void* Params::clear_address(const Param& param,
                                         const at::Tensor* grad) const {
  if (!is_where_it_was(param)) return &unclear;
  if (grad == nullptr || !grad->defined()) return nullptr;
  const c10::TensorImpl& own = *grad->unsafeGetTensorImpl();
  const void* const data =
      has_form(param, own) ? data_of(own, param.item_size) : nullptr;
  return data == nullptr ? &unclear : data;
}

// A parameter whose elements are elsewhere, or lie in another order.
inline void Params::look_closely(std::size_t i,
                                 std::vector<Move>& moves) const {
  const Param& param = all_[i];
  const std::string name = "step: " + name_of(i);
  const Param now = bound(param.object, name);
  if (now.tensor.shape() != param.tensor.shape()) {
    refuse(name, "it had the shape ", to_string(param.tensor.shape()),
           " and now has ", to_string(now.tensor.shape()),
           "; make an optimizer for the new one");
  }
  if (now.tensor.dtype() != param.tensor.dtype()) {
    refuse(name, "it was ", ::fuse::name_of(param.tensor.dtype()), " and is ",
           ::fuse::name_of(now.tensor.dtype()),
           " now; make an optimizer for the new one");
  }
  moves.push_back({param.tensor, now.tensor});
}

// The address of a gradient that has not the form of its parameter, or no memory.
inline const void* Params::address_of(std::size_t i, const at::Tensor& grad) {
  static const char empty_gradient = 0;  // its address says that there is one
  const Tensor seen = view_of("step: " + grad_name(i), grad);
  const Tensor& param = all_[i].tensor;
  if (seen.shape() != param.shape()) {
    refuse("step: " + grad_name(i), "it has shape ", to_string(seen.shape()),
           ", but the parameter has shape ", to_string(param.shape()));
  }
  need_gradients_ = need_gradients_ || seen.dtype() != param.dtype() ||
                    seen.strides() != param.strides();
  return seen.numel() == 0 ? &empty_gradient : seen.raw_data();
}

// Everything that is needed is brought near before anything is looked at.
inline void Params::collect_some(std::size_t first, std::size_t count) {
  const Param* const some = all_.data() + first;
  std::array<const at::Tensor*, together> grads;
  for (std::size_t k = 0; k < count; ++k) fetch(some[k].impl);
  for (std::size_t k = 0; k < count; ++k) {
    fetch(storage_of(*some[k].impl));
    grads[k] = grad_place(*some[k].impl);
    fetch(grads[k]);
  }
  for (std::size_t k = 0; k < count; ++k) {
    if (grads[k] != nullptr) fetch(grads[k]->unsafeGetTensorImpl());
  }
  for (std::size_t k = 0; k < count; ++k) {
    if (grads[k] == nullptr) continue;
    fetch(storage_of(*grads[k]->unsafeGetTensorImpl()));
  }
  for (std::size_t k = 0; k < count; ++k) {
    addresses_[first + k] = clear_address(some[k], grads[k]);
  }
}

inline void Params::collect_closely(std::size_t i, std::vector<Move>& moves) {
  const Param& param = all_[i];
  addresses_[i] = nullptr;
  if (!is_where_it_was(param)) look_closely(i, moves);
  const at::Tensor& grad = param.impl->grad();
  if (grad.defined()) addresses_[i] = address_of(i, grad);
}

template <class Beside>
void Params::collect_once(std::vector<Move>& moves, Beside beside) {
  need_gradients_ = false;
  share_out([this](std::size_t first,
                   std::size_t count) { collect_some(first, count); },
            beside);
  for (std::size_t i = 0; i < all_.size(); ++i) {
    if (addresses_[i] == &unclear) collect_closely(i, moves);
  }
}

template <class Beside>
void Params::collect(Beside beside) {
  std::vector<Move> moves;
  collect_once(moves, beside);
  if (moves.empty()) return;
  move_tensors(moves, "step");
  numbers_.clear();
  for (Param& each : all_) {
    each.data = data_of(*each.impl, each.item_size);
    each.keys = each.impl->key_set();
    number(each);
  }
  moves.clear();
  collect_once(moves, [] {});  // beside the parameters' new strides
}

inline std::vector<Tensor> Params::gradients() const {
  std::vector<Tensor> found;
  for (std::size_t i = 0; i < all_.size(); ++i) {
    const at::Tensor& grad = all_[i].impl->grad();
    found.push_back(grad.defined() ? view_of(grad_name(i), grad) : Tensor());
  }
  return found;
}

template <class Beside>
void Params::note_writes(Beside beside) const {
  const auto some = [this](std::size_t first, std::size_t count) {
    const auto each = [&](auto call) {
      for (std::size_t i = first; i < first + count; ++i) {
        if (has_gradient(i)) call(*all_[i].impl);
      }
    };
    // To count up waits for the counter, and all that follows waits for that. To
    // read it does not, so this comes first.
    each([](const c10::TensorImpl& param) {
      static_cast<void>(param.version_counter().current_version());
    });
    each([](c10::TensorImpl& param) { param.bump_version(); });
  };
  share_out(some, beside);
}

}  // namespace fuse::libtorch::detail
