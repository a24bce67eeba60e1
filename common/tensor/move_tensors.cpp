#include "fusebook/tensor/move_tensors.h"

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <string>
#include <unordered_set>
#include <utility>

#include "fusebook/support/error.h"
#include "fusebook/tensor/list_registry.h"
#include "fusebook/tensor/tensor_layout.h"

namespace fuse {
namespace {

std::atomic<std::uint64_t> moves_made{0};

std::string kind_of(const Tensor& tensor) {
  return fmt::format("{} of {} on {}", to_string(tensor.shape()),
                     name_of(tensor.dtype()), to_string(tensor.device()));
}

void check(const Move& move, const char* call) {
  check_defined(move.tensor);
  check_defined(move.to, "the memory");
  if (move.to.shape() != move.tensor.shape() ||
      move.to.dtype() != move.tensor.dtype() ||
      move.to.device() != move.tensor.device()) {
    throw Error(fmt::format("{}: a tensor {} cannot get the memory of one {}",
                            call, kind_of(move.tensor), kind_of(move.to)));
  }
  check_storable(*move.to.impl(), call);
}

void put(TensorImpl& tensor, const TensorImpl& to) {
  tensor.storage = to.storage;
  tensor.data = to.data;
  tensor.as_number = nullptr;  // shows the old memory
  set_strides(tensor, to.strides);
}

void check_alike(const std::vector<Tensor>& params) {
  for (std::size_t i = 0; i < params.size(); ++i) {
    if (!params[i].defined()) {
      throw Error(fmt::format("flatten_: parameter {} is undefined", i));
    }
    if (params[i].dtype() != params[0].dtype()) {
      throw Error(fmt::format(
          "flatten_: parameter {} is {} but parameter 0 is {}; flatten "
          "parameters of each dtype by themselves",
          i, name_of(params[i].dtype()), name_of(params[0].dtype())));
    }
    if (params[i].device() != params[0].device()) {
      throw Error(fmt::format(
          "flatten_: parameter {} is on {} but parameter 0 is on {}; flatten "
          "parameters of each device by themselves",
          i, to_string(params[i].device()), to_string(params[0].device())));
    }
    check_storable(*params[i].impl(), "flatten_");
  }
}

}  // namespace

// Neighbours in memory alone can share bytes if each starts behind the furthest
// end before it.
void check_apart(const std::vector<Tensor>& params, const char* call) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < params.size(); ++i) {
    if (params[i].numel() > 0) order.push_back(i);
  }
  const auto begin = [&](std::size_t i) {
    return reinterpret_cast<std::uintptr_t>(params[i].raw_data());
  };
  const auto end = [&](std::size_t i) {
    return begin(i) + extent_bytes(*params[i].impl());
  };
  std::ranges::sort(order, {}, begin);
  for (std::size_t k = 0; k < order.size(); ++k) {
    for (std::size_t l = k + 1;
         l < order.size() && begin(order[l]) < end(order[k]); ++l) {
      if (!share_bytes(*params[order[k]].impl(), *params[order[l]].impl())) {
        continue;
      }
      const auto [first, second] = std::minmax(order[k], order[l]);
      throw Error(fmt::format(
          "{}: parameters {} and {} share memory; name each tensor once", call,
          first, second));
    }
  }
}

std::uint64_t moves_so_far() {
  return moves_made.load(std::memory_order_relaxed);
}

void move_tensors(std::span<const Move> moves, const char* call) {
  for (const Move& each : moves) check(each, call);
  // What was recorded for the old memory runs there.
  for (const Move& each : moves) {
    each.tensor.address(true);
    each.to.address(false);
  }
  std::unordered_set<const TensorImpl*> moved;
  for (const Move& each : moves) {
    moved.insert(each.tensor.impl().get());
  }
  for (const Move& each : moves) put(*each.tensor.impl(), *each.to.impl());
  list_registry().follow(moved);
  moves_made.fetch_add(1, std::memory_order_relaxed);
}

void Tensor::set_data(const Tensor& data) const {
  check_defined(*this);
  check_defined(data, "the memory");
  const Move move = {*this, data};
  move_tensors({&move, 1}, "set_data");
}

Tensor flatten_(const std::vector<Tensor>& params) {
  if (params.empty()) return empty({0});
  check_alike(params);
  check_apart(params, "flatten_");
  std::int64_t numel = 0;
  for (const Tensor& param : params) numel += param.numel();
  const Tensor buffer = empty({numel}, params[0].dtype(), params[0].device());
  std::vector<Move> moves;
  std::int64_t next = 0;
  for (const Tensor& param : params) {
    Tensor part = buffer.narrow(0, next, param.numel()).view(param.shape());
    part.copy_(param.detach());
    next += param.numel();
    moves.push_back({param, std::move(part)});
  }
  move_tensors(moves, "flatten_");
  return buffer;
}

}  // namespace fuse
