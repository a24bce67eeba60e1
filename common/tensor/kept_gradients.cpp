#include "fusebook/tensor/kept_gradients.h"

#include <algorithm>
#include <array>
#include <ranges>
#include <unordered_map>
#include <unordered_set>

#include "fusebook/tensor/borrowed_list.h"
#include "fusebook/tensor/tensor_layout.h"

namespace fuse {
namespace {

using Lists = std::vector<std::weak_ptr<ListImpl>>;

// By the first of their parameters.
class Kept {
 public:
  void add(const std::shared_ptr<ListImpl>& list) {
    if (lists_.size() >= purge_at_) purge();
    ++times_;
    Lists& alike = lists_[list->owners->tensors.front().impl().get()];
    std::erase_if(alike, [](const auto& each) { return each.expired(); });
    alike.push_back(list);
  }

  std::uint64_t times() const { return times_; }

  /// The newest list from this parameter on whose parameters `fits` takes.
  template <class Fits>
  std::shared_ptr<ListImpl> find(const Tensor& first, Fits fits) const {
    const auto alike = lists_.find(first.impl().get());
    if (alike == lists_.end()) return nullptr;
    for (const auto& each : std::views::reverse(alike->second)) {
      std::shared_ptr<ListImpl> list = each.lock();
      if (list != nullptr && fits(list->owners->tensors)) return list;
    }
    return nullptr;
  }

 private:
  void purge() {
    std::erase_if(lists_, [](const auto& entry) {
      const Lists& alike = entry.second;
      return std::all_of(alike.begin(), alike.end(),
                         [](const auto& each) { return each.expired(); });
    });
    purge_at_ = std::max<std::size_t>(64, 2 * lists_.size());
  }

  std::unordered_map<const TensorImpl*, Lists> lists_;
  std::size_t purge_at_ = 64;
  std::uint64_t times_ = 0;
};

Kept& kept() {
  static thread_local Kept lists;
  return lists;
}

using Keepers = std::vector<std::weak_ptr<const GradientKeeper>>;

Keepers& keepers() {
  static thread_local Keepers all;
  return all;
}

bool has_grad(const Tensor& param) { return param.impl()->grad != nullptr; }

// True if these are all parameters that have a gradient, in order.
bool are_all(const std::vector<Tensor>& owners,
             const std::vector<Tensor>& params) {
  auto next = owners.begin();
  for (const Tensor& param : params) {
    if (!has_grad(param)) continue;
    if (next == owners.end() || next->impl() != param.impl()) return false;
    ++next;
  }
  return next == owners.end();
}

// Its keeper need not have seen the gradients of this step.
std::optional<TensorList> up_to_date(std::shared_ptr<ListImpl> list) {
  if (list == nullptr) return std::nullopt;
  TensorList handle(std::move(list));
  if (follow_kept_gradients(handle) == Change::other) return std::nullopt;
  return handle;
}

// What is left of some parameters as lists are found that hold some of them.
class Open {
 public:
  template <class Counts>
  Open(const std::vector<Tensor>& params, Counts counts) : params_(params) {
    for (const Tensor& param : params) {
      if (counts(param)) left_.insert(param.impl().get());
    }
  }

  std::shared_ptr<ListImpl> find_from(const Tensor& first) const {
    if (!has(first)) return nullptr;
    return kept().find(first,
                       [&](const auto& owners) { return has_all(owners); });
  }
  bool has_all(const std::vector<Tensor>& params) const {
    return std::all_of(params.begin(), params.end(),
                       [&](const Tensor& each) { return has(each); });
  }
  void take(const std::vector<Tensor>& params) {
    for (const Tensor& each : params) left_.erase(each.impl().get());
  }
  std::vector<Tensor> rest() {
    std::vector<Tensor> rest;
    for (const Tensor& param : params_) {
      if (left_.erase(param.impl().get()) > 0) rest.push_back(param);
    }
    return rest;
  }

 private:
  bool has(const Tensor& param) const {
    return left_.contains(param.impl().get());
  }

  const std::vector<Tensor>& params_;
  std::unordered_set<const TensorImpl*> left_;
};

// The gradients of lists that a next step will make.
std::vector<TensorList> lists_to_come(Open& open) {
  std::vector<TensorList> lists;
  for (const auto& each : keepers()) {
    const auto keeper = each.lock();
    if (keeper == nullptr) continue;
    for (const std::vector<Tensor>& params : keeper->lists_to_come()) {
      if (!open.has_all(params)) continue;
      open.take(params);
      std::vector<Tensor> grads;
      grads.reserve(params.size());
      for (const Tensor& param : params) grads.push_back(param.grad());
      for (TensorList& list : lists_by_dtype(grads, "grads")) {
        lists.push_back(std::move(list));
      }
    }
  }
  return lists;
}

}  // namespace

std::vector<TensorList> lists_by_dtype(const std::vector<Tensor>& tensors,
                                       const char* label) {
  std::array<std::vector<Tensor>, dtype_count> by_dtype;
  for (const Tensor& each : tensors) {
    check_numbers(label, each.dtype());
    by_dtype[std::size_t(each.dtype())].push_back(each);
  }
  std::vector<TensorList> lists;
  for (auto& same : by_dtype) {
    if (!same.empty()) lists.emplace_back(std::move(same), label);
  }
  return lists;
}

void announce(const std::shared_ptr<const GradientKeeper>& keeper) {
  std::erase_if(keepers(), [](const auto& each) { return each.expired(); });
  keepers().push_back(keeper);
}

void keep_gradients(const std::shared_ptr<ListImpl>& list) {
  if (list->count > 0) kept().add(list);
}

std::optional<TensorList> kept_gradients(const std::vector<Tensor>& params) {
  const auto first = std::find_if(params.begin(), params.end(), has_grad);
  if (first == params.end()) return std::nullopt;
  return up_to_date(kept().find(
      *first, [&](const auto& owners) { return are_all(owners, params); }));
}

std::vector<TensorList> kept_parts(const std::vector<Tensor>& params,
                                   std::vector<Tensor>& others) {
  Open open(params, has_grad);
  std::vector<TensorList> parts = lists_to_come(open);
  for (const Tensor& param : params) {
    const auto part = up_to_date(open.find_from(param));
    if (!part) continue;
    open.take(part->impl()->owners->tensors);
    parts.push_back(*part);
  }
  others = open.rest();
  return parts;
}

std::uint64_t times_kept() { return kept().times(); }

std::shared_ptr<ListImpl> kept_params(const Tensor& first) {
  const auto list = kept().find(first, [](const auto&) { return true; });
  return list == nullptr ? nullptr : list->owners;
}

std::vector<TensorList> lists_of_params(const std::vector<Tensor>& params) {
  Open open(params, [](const Tensor&) { return true; });
  std::vector<TensorList> lists;
  for (const Tensor& param : params) {
    const auto list = open.find_from(param);
    if (list == nullptr) continue;
    open.take(list->owners->tensors);
    lists.emplace_back(list->owners);
  }
  for (TensorList& rest : lists_by_dtype(open.rest(), "params")) {
    lists.push_back(std::move(rest));
  }
  return lists;
}

}  // namespace fuse
