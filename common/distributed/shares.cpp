#include "fusebook/distributed/shares.h"

#include <algorithm>
#include <vector>

#include "fusebook/tensor/move_tensors.h"

namespace fuse {
namespace {

// total * k / ranks, without overflow.
std::int64_t even_cut(std::int64_t total, int k, int ranks) {
  return total / ranks * k + total % ranks * k / ranks;
}

// The allowed place of a cut that is nearest to one inside of a parameter.
std::int64_t nearest(std::int64_t inside, const Shareable& param) {
  const std::int64_t unit = param.unit == 0 ? param.numel : param.unit;
  const std::int64_t below = inside / unit * unit;
  const std::int64_t above = std::min(below + unit, param.numel);
  return inside - below <= above - inside ? below : above;
}

// Where the elements of each rank begin, if all parameters are one row; and the
// end.
std::vector<std::int64_t> cuts_of(const std::vector<Shareable>& params,
                                  int ranks) {
  std::int64_t total = 0;
  for (const Shareable& each : params) total += each.numel;
  std::vector<std::int64_t> cuts = {0};
  std::int64_t begin = 0;
  std::size_t i = 0;
  for (int k = 1; k < ranks; ++k) {
    const std::int64_t wanted = even_cut(total, k, ranks);
    while (i < params.size() && begin + params[i].numel <= wanted) {
      begin += params[i++].numel;
    }
    cuts.push_back(i == params.size()
                       ? total
                       : begin + nearest(wanted - begin, params[i]));
  }
  cuts.push_back(total);
  return cuts;
}

// Who owns the element at a place; the last rank, if there is none.
int owner_of(std::int64_t place, const std::vector<std::int64_t>& cuts) {
  const auto after = std::upper_bound(cuts.begin(), cuts.end(), place);
  const auto ranks = std::ptrdiff_t(cuts.size()) - 1;
  return int(std::min(after - cuts.begin(), ranks) - 1);
}

}  // namespace

std::vector<Share> make_shares(const std::vector<Shareable>& params,
                               int ranks) {
  const auto cuts = cuts_of(params, ranks);
  std::vector<Share> shares;
  std::int64_t first = 0;
  for (std::size_t p = 0; p < params.size(); ++p) {
    const std::int64_t end = first + params[p].numel;
    std::int64_t place = first;
    do {
      const int owner = owner_of(place, cuts);
      const std::int64_t until =
          owner + 1 < ranks ? std::min(end, cuts[std::size_t(owner) + 1]) : end;
      shares.push_back({p, place - first, until - place, owner});
      place = until;
    } while (place < end);
    first = end;
  }
  return shares;
}

Tensor view_of(const Share& share, const Tensor& param) {
  Tensor own = param.detach();
  if (share.count == param.numel()) return own;
  return own.view({-1}).narrow(0, share.begin, share.count);
}

void move_views(const std::vector<Tensor>& views,
                const std::vector<Share>& shares, int rank,
                const std::vector<Tensor>& params) {
  std::vector<Move> moves;
  auto view = views.begin();
  for (const Share& share : shares) {
    if (share.owner != rank) continue;
    Tensor now = view_of(share, params[share.param]);
    if (now.raw_data() != view->raw_data()) moves.push_back({*view, now});
    ++view;
  }
  move_tensors(moves, "step");
}

}  // namespace fuse
