#pragma once

#include <ATen/ATen.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "fusebook/libtorch/view.h"
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
  /// Throws Error for what cannot be stepped; then nothing has changed.
  void collect();

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
  /// Tells LibTorch that parameters with gradients have been written.
  void note_writes() const;

 private:
  struct Param {
    at::Tensor object;
    Tensor tensor;
    c10::TensorImpl* impl;
    const void* data;
    c10::DispatchKeySet keys;
    caffe2::TypeMeta dtype;
    std::size_t first;  // of its sizes in numbers_; its strides follow
    std::size_t dims;
  };

  static Param bound(const at::Tensor& object, const std::string& name);
  void number(Param& param);
  bool has_form(const Param& param, const c10::TensorImpl& impl) const;
  void look_closely(std::size_t i, std::vector<Move>& moves) const;
  const void* address_of(std::size_t i, const at::Tensor& grad);
  void collect_once(std::vector<Move>& moves);
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
  return {object,          tensor,        impl, object.data_ptr(),
          impl->key_set(), impl->dtype(), 0,    std::size_t(object.dim())};
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
  const std::int64_t* const own = numbers_.data() + param.first;
  return sizes.size() == param.dims &&
         std::equal(sizes.begin(), sizes.end(), own) &&
         std::equal(strides.begin(), strides.end(), own + param.dims);
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

inline void Params::collect_once(std::vector<Move>& moves) {
  need_gradients_ = false;
  for (std::size_t i = 0; i < all_.size(); ++i) {
    const Param& param = all_[i];
    addresses_[i] = nullptr;
    if (!has_form(param, *param.impl) ||
        param.object.data_ptr() != param.data) {
      look_closely(i, moves);
    }
    const at::Tensor& grad = param.impl->grad();
    if (!grad.defined()) continue;
    const c10::TensorImpl& own = *grad.unsafeGetTensorImpl();
    if (has_form(param, own)) addresses_[i] = own.data();
    if (addresses_[i] == nullptr) addresses_[i] = address_of(i, grad);
  }
}

inline void Params::collect() {
  std::vector<Move> moves;
  collect_once(moves);
  if (moves.empty()) return;
  move_tensors(moves, "step");
  numbers_.clear();
  for (Param& each : all_) {
    each.data = each.object.data_ptr();
    each.keys = each.impl->key_set();
    number(each);
  }
  moves.clear();
  collect_once(moves);  // beside the parameters' new strides
}

inline std::vector<Tensor> Params::gradients() const {
  std::vector<Tensor> found;
  for (std::size_t i = 0; i < all_.size(); ++i) {
    const at::Tensor& grad = all_[i].impl->grad();
    found.push_back(grad.defined() ? view_of(grad_name(i), grad) : Tensor());
  }
  return found;
}

inline void Params::note_writes() const {
  for (std::size_t i = 0; i < all_.size(); ++i) {
    if (has_gradient(i)) all_[i].impl->bump_version();
  }
}

}  // namespace fuse::libtorch::detail
