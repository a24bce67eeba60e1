#include "fusebook/distributed/gradient_sums.h"

#include <fmt/core.h>

#include <utility>

#include "fusebook/foreach/foreach.h"
#include "fusebook/tensor/kept_gradients.h"

namespace fuse {
namespace {

std::size_t bytes_of_share(const Share& share, std::uint8_t code) {
  return std::size_t(share.count) * size_of(DType(code - 1));
}

Tensor part_of(const Tensor& grad, const Share& share) {
  if (share.count == grad.numel()) return grad.contiguous().view({-1});
  return grad.contiguous().view({-1}).narrow(0, share.begin, share.count);
}

std::string said(std::uint8_t code) {
  return code == 0 ? "none" : name_of(DType(code - 1));
}

// Pairs of tensors, by the dtype of both.
struct Pairs {
  std::vector<Tensor> to;
  std::vector<Tensor> from;

  template <class Work>
  void each_dtype(Work work) const {
    const auto targets = lists_by_dtype(to, "sums");
    const auto sources = lists_by_dtype(from, "gradients");
    for (std::size_t k = 0; k < targets.size(); ++k) {
      work(targets[k], sources[k]);
    }
  }
};

}  // namespace

GradientSums::GradientSums(Ranks& ranks, const std::vector<Share>& shares,
                           std::vector<Tensor> params, std::vector<Tensor> own)
    : ranks_(ranks),
      shares_(shares),
      params_(std::move(params)),
      own_(std::move(own)),
      sums_(own_.size()),
      spare_(own_.size()),
      dtypes_(params_.size()) {
  for (const Share& each : shares_) {
    if (each.owner == ranks_.rank()) own_params_.push_back(each.param);
  }
}

void GradientSums::add(bool contributes, const RankCall& call) {
  const auto all = codes_of_all(own_codes(contributes));
  check_codes(all, call);
  ranks_.or_end(call, [&] { add_all(all); });
  if (!contributes) return;
  for (Tensor& param : params_) param.set_grad(Tensor());
}

// In the order of the ranks. What this rank has for itself is added where it was
// packed.
void GradientSums::add_all(const std::vector<Codes>& all) {
  const auto ranks = std::size_t(ranks_.size());
  const auto me = std::size_t(ranks_.rank());
  std::vector<std::size_t> sent;
  std::vector<std::size_t> received;
  for (std::size_t r = 0; r < ranks; ++r) {
    sent.push_back(bytes_for(int(r), all[me]));
    received.push_back(r == me ? 0 : bytes_for(int(me), all[r]));
  }
  const auto out = packed_.parts(sent);
  auto in = arrived_.parts(received);
  in[me] = out[me];
  for (std::size_t r = 0; r < ranks; ++r) pack(int(r), all[me], out[r].data());
  ranks_.exchange(
      std::vector<std::span<const std::byte>>(out.begin(), out.end()), in,
      &RankTraffic::gradients);
  for (std::size_t r = 0; r < ranks; ++r) add_from(all[r], in[r].data());
}

GradientSums::Codes GradientSums::own_codes(bool contributes) const {
  Codes codes(params_.size());
  for (std::size_t p = 0; p < params_.size() && contributes; ++p) {
    const Tensor grad = params_[p].grad();
    if (grad.defined()) codes[p] = std::uint8_t(int(grad.dtype()) + 1);
  }
  return codes;
}

std::vector<GradientSums::Codes> GradientSums::codes_of_all(const Codes& own) {
  const std::string sent(own.begin(), own.end());
  std::vector<Codes> all;
  for (const auto& text : ranks_.gather(sent, &RankTraffic::agreement)) {
    all.emplace_back(text.begin(), text.end());
  }
  return all;
}

// All ranks see the same codes, so that all throw.
void GradientSums::check_codes(const std::vector<Codes>& all,
                               const RankCall& call) {
  for (std::size_t p = 0; p < params_.size(); ++p) {
    std::uint8_t known = dtypes_[p] ? std::uint8_t(int(*dtypes_[p]) + 1) : 0;
    for (std::size_t r = 0; r < all.size(); ++r) {
      const std::uint8_t code = all[r][p];
      if (code == 0 || known == 0 || code == known) {
        known = code == 0 ? known : code;
        continue;
      }
      throw RanksDisagree(fmt::format(
          "rank {} has a gradient of parameter {} in {}, in {}, but others of "
          "this step are in {}",
          r, p, said(code), ranks_.places(call)[r], said(known)));
    }
  }
}

std::size_t GradientSums::bytes_for(int owner, const Codes& codes) const {
  std::size_t bytes = 0;
  for (const Share& each : shares_) {
    const std::uint8_t code = codes[each.param];
    if (each.owner == owner && code != 0) bytes += bytes_of_share(each, code);
  }
  return bytes;
}

void GradientSums::pack(int owner, const Codes& codes, std::byte* next) const {
  for (const Share& each : shares_) {
    const std::uint8_t code = codes[each.param];
    if (each.owner != owner || code == 0) continue;
    from_blob(next, {each.count}, DType(code - 1))
        .copy_(part_of(params_[each.param].grad(), each));
    next += bytes_of_share(each, code);
  }
}

void GradientSums::add_from(const Codes& codes, std::byte* next) {
  Pairs added;
  Pairs first;
  for (std::size_t i = 0; i < own_.size(); ++i) {
    const std::size_t p = own_params_[i];
    if (codes[p] == 0) continue;
    const auto dtype = DType(codes[p] - 1);
    dtypes_[p] = dtype;
    const Tensor one = from_blob(next, own_[i].shape(), dtype);
    next += one.nbytes();
    const bool is_first = !sums_[i].defined();
    if (is_first) {
      Tensor& spare = spare_[i];
      if (!spare.defined() || spare.dtype() != dtype) {
        spare = empty(own_[i].shape(), dtype, own_[i].device());
      }
      sums_[i] = spare;
    }
    Pairs& pairs = is_first ? first : added;
    pairs.to.push_back(sums_[i]);
    pairs.from.push_back(one.to(own_[i].device()));
  }
  // What other ranks own has a dtype, too.
  for (std::size_t p = 0; p < codes.size(); ++p) {
    if (codes[p] != 0) dtypes_[p] = DType(codes[p] - 1);
  }
  first.each_dtype([](const TensorList& to, const TensorList& from) {
    foreach_copy_(to, from);
  });
  added.each_dtype([](const TensorList& to, const TensorList& from) {
    foreach_add_(to, from);
  });
}

void GradientSums::hand_over() {
  for (std::size_t i = 0; i < own_.size(); ++i) own_[i].set_grad(sums_[i]);
}

void GradientSums::clear() {
  for (Tensor& each : sums_) each = Tensor();
  for (auto& each : dtypes_) each.reset();
}

}  // namespace fuse
