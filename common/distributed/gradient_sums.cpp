#include "fusebook/distributed/gradient_sums.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "fusebook/device/allocator.h"
#include "fusebook/distributed/parcel.h"

namespace fuse {
namespace {

DType dtype_of(std::uint8_t code) { return DType(code - 1); }

std::string said(std::uint8_t code) {
  return code == 0 ? "none" : name_of(dtype_of(code));
}

Tensor part_of(const Tensor& grad, const Share& share) {
  if (share.count == grad.numel()) return grad;
  return grad.contiguous().view({-1}).narrow(0, share.begin, share.count);
}

bool any_defined(const std::vector<Tensor>& tensors) {
  return std::any_of(tensors.begin(), tensors.end(),
                     [](const Tensor& each) { return each.defined(); });
}

// True if nobody else can write there, once its parameter has given it up.
bool is_only_here(const Tensor& grad, const Tensor& param) {
  const std::shared_ptr<Storage>& storage = grad.impl()->storage;
  return grad.is_contiguous() && param.impl()->grad == grad.impl() &&
         grad.impl().use_count() == 2 && storage.use_count() == 1 &&
         storage->owned;
}

}  // namespace

GradientSums::GradientSums(Ranks& ranks, const std::vector<Share>& shares,
                           std::vector<Tensor> params, std::vector<Tensor> own,
                           const CompileOptions& options)
    : ranks_(ranks),
      shares_(shares),
      params_(std::move(params)),
      own_(std::move(own)),
      sums_(own_.size()),
      spare_(own_.size()),
      dtypes_(params_.size()),
      room_(std::size_t(ranks.size()), Parts(own_.size())),
      sent_(std::size_t(ranks.size())),
      taken_(std::size_t(ranks.size())),
      add_(compile(std::function<void()>([this] {
                     for (const OpenList& list : lists_) list.add_up();
                   }),
                   options)) {
  for (const Share& each : shares_) {
    if (each.owner == ranks_.rank()) own_params_.push_back(each.param);
  }
}

void GradientSums::add(bool contributes, const RankCall& call) {
  const auto all = codes_of_all(own_codes(contributes));
  check_codes(all, call);
  ranks_.or_end(call, [&] {
    add_arrived(0);  // its memory is needed
    exchange(all);
    add_arrived(are_alike() ? most_open : 0);
  });
  if (!contributes) return;
  for (Tensor& param : params_) param.set_grad(Tensor());
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

// In the order of the ranks.
void GradientSums::exchange(const std::vector<Codes>& all) {
  const auto ranks = std::size_t(ranks_.size());
  const auto me = std::size_t(ranks_.rank());
  std::vector<Parcel> taken;
  std::vector<Parts> sent(ranks);  // kept until they have arrived
  std::vector<std::vector<std::span<const std::byte>>> out(ranks);
  std::vector<std::vector<std::span<std::byte>>> in(ranks);
  for (std::size_t r = 0; r < ranks; ++r) {
    if (r == me) continue;
    sent[r] = parts_for(int(r), all[me]);
    Parcel parcel(sent[r], sent_[r]);
    parcel.pack();
    out[r].assign(parcel.stretches().begin(), parcel.stretches().end());
    in[r] = taken.emplace_back(room_for(r, all[r]), taken_[r]).stretches();
  }
  ranks_.exchange_stretches(out, in, &RankTraffic::gradients);
  sent.clear();
  for (Parcel& each : taken) each.unpack();
  for (std::size_t r = 0; r < ranks; ++r) {
    const Codes& codes = all[r];
    if (std::count(codes.begin(), codes.end(), 0) == i64(codes.size()))
      continue;
    for (std::size_t p = 0; p < codes.size(); ++p) {
      if (codes[p] != 0) dtypes_[p] = dtype_of(codes[p]);
    }
    arrived_.push_back(r == me ? own_parts(codes) : of_views(r, codes));
  }
}

DType GradientSums::sent_dtype(std::uint8_t code) const {
  const DType own = dtype_of(code);
  return sent_as_ && size_of(*sent_as_) < size_of(own) ? *sent_as_ : own;
}

// Of this rank's gradients, what another one owns.
GradientSums::Parts GradientSums::parts_for(int owner,
                                            const Codes& codes) const {
  Parts parts;
  for (const Share& each : shares_) {
    if (each.owner != owner || codes[each.param] == 0) continue;
    parts.push_back(part_of(params_[each.param].grad(), each)
                        .to(sent_dtype(codes[each.param])));
  }
  return parts;
}

// Memory for what a rank sends, of views that it has a gradient of.
GradientSums::Parts GradientSums::room_for(std::size_t rank,
                                           const Codes& codes) {
  Parts parts;
  for (std::size_t i = 0; i < own_.size(); ++i) {
    const std::uint8_t code = codes[own_params_[i]];
    if (code == 0) continue;
    parts.push_back(room_like(room_[rank][i], i, sent_dtype(code)));
  }
  return parts;
}

// The same, undefined where there is none.
GradientSums::Parts GradientSums::of_views(std::size_t rank,
                                           const Codes& codes) const {
  Parts parts = room_[rank];
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (codes[own_params_[i]] == 0) parts[i] = Tensor();
  }
  return parts;
}

// What this rank has for itself: where it is, if nobody else can change it.
GradientSums::Parts GradientSums::own_parts(const Codes& codes) {
  Parts parts(own_.size());
  std::size_t i = 0;
  for (const Share& each : shares_) {
    if (each.owner != ranks_.rank()) continue;
    Tensor& part = parts[i++];
    if (codes[each.param] == 0) continue;
    const Tensor grad = params_[each.param].grad();
    const DType dtype = sent_dtype(codes[each.param]);
    const bool stays =
        dtype == grad.dtype() && is_only_here(grad, params_[each.param]);
    part = part_of(grad, each);
    if (stays) continue;
    Tensor& room = room_[std::size_t(ranks_.rank())][i - 1];
    room_like(room, i - 1, dtype).copy_(part);
    part = room;
  }
  return parts;
}

Tensor& GradientSums::room_like(Tensor& room, std::size_t view,
                                DType dtype) const {
  if (!room.defined() || room.dtype() != dtype) {
    room = empty(own_[view].shape(), dtype, own_[view].device());
  }
  return room;
}

Tensor& GradientSums::spare(std::size_t view) {
  return room_like(spare_[view], view, *dtypes_[own_params_[view]]);
}

// True if the same views have gradients from all ranks that have any.
bool GradientSums::are_alike() const {
  const auto alike = [](const Parts& a, const Parts& b) {
    return std::equal(a.begin(), a.end(), b.begin(),
                      [](const Tensor& x, const Tensor& y) {
                        return x.defined() == y.defined();
                      });
  };
  const bool has_sums = any_defined(sums_);
  return std::all_of(arrived_.begin(), arrived_.end(), [&](const Parts& each) {
    return alike(each, has_sums ? sums_ : arrived_.front());
  });
}

// Until so many are left, in few passes if it can be.
void GradientSums::add_arrived(std::size_t left) {
  const bool together = are_alike();
  while (arrived_.size() > left) {
    const auto end =
        arrived_.begin() +
        std::ptrdiff_t(std::min(together ? most_open : 1, arrived_.size()));
    std::vector<Parts> some(arrived_.begin(), end);
    arrived_.erase(arrived_.begin(), end);
    if (together) {
      add_together(std::move(some));
    } else {
      add_one(some.front());
    }
  }
}

// Views that have no sum so far are for themselves.
void GradientSums::add_one(const Parts& parts) {
  Parts first(own_.size());
  Parts others(own_.size());
  OpenSums rest = {sums_, {parts}};
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (!parts[i].defined()) rest.to[i] = Tensor();
    if (!parts[i].defined() || sums_[i].defined()) continue;
    sums_[i] = first[i] = spare(i);
  }
  for (const OpenSums& some : {OpenSums{first, {parts}, true}, rest}) {
    for (const OpenList& list : some.lists()) list.add_up();
  }
}

void GradientSums::add_together(std::vector<Parts> parts) {
  OpenSums all = {sums_, std::move(parts)};
  for (std::size_t i = 0; i < own_.size(); ++i) {
    const Tensor& first = all.terms.front()[i];
    if (!first.defined() || sums_[i].defined()) continue;
    all.is_new = true;
    all.to[i] = sums_[i] = spare(i);
  }
  lists_ = all.lists();
  add_();
  lists_.clear();
}

void GradientSums::hand_over() {
  open_ = {sums_, std::move(arrived_)};
  arrived_.clear();
  if (!any_defined(sums_) && sent_as_) {
    open_.is_new = true;
    for (std::size_t i = 0; i < own_.size(); ++i) {
      if (open_.terms.front()[i].defined()) open_.to[i] = spare(i);
    }
  } else if (!any_defined(sums_)) {
    open_.to = std::move(open_.terms.front());
    open_.terms.erase(open_.terms.begin());
  }
  for (std::size_t i = 0; i < own_.size(); ++i) own_[i].set_grad(open_.to[i]);
}

void GradientSums::clear() {
  for (Tensor& each : own_) each.set_grad(Tensor());
  for (Tensor& each : sums_) each = Tensor();
  arrived_.clear();
  open_ = {};
  for (auto& each : dtypes_) each.reset();
}

}  // namespace fuse
