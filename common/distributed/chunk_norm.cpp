#include "fusebook/distributed/chunk_norm.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <utility>

#include "fusebook/device/sum_on_host.h"
#include "fusebook/foreach/foreach.h"
#include "fusebook/foreach/reductions.h"

namespace fuse {
namespace {

std::int64_t chunks_in(std::int64_t count) {
  return (count + sum_chunk_size - 1) / sum_chunk_size;
}

// Sums of chunks, or of tensors, are added as one chunk.
double joined(const std::vector<double>& sums) {
  if (sums.size() == 1) return sums[0];
  double total = 0;
  const auto count = i64(sums.size());
  if (count == 0) return 0;
  sum_on_host(
      {int(DType::float64), sums.data(), nullptr, count, count, &total});
  return total;
}

}  // namespace

ChunkNorm::ChunkNorm(Ranks& ranks, const std::vector<Share>& shares,
                     std::vector<std::int64_t> numels,
                     const CompileOptions& options)
    : ranks_(ranks),
      shares_(shares),
      numels_(std::move(numels)),
      look_(compile(std::function<void()>([this] { look(); }), options)) {}

void ChunkNorm::make(const OpenSums& sums, const SumFactors& factors,
                     const WantedOfSums& wanted) {
  chunks_ = sums.chunks();
  lists_ = chunks_.lists();
  factors_ = factors;
  wanted_ = wanted;
  squares_.clear();
  finite_ = 1.0;
  if (!lists_.empty()) look_();
}

void ChunkNorm::look() {
  for (const OpenList& list : lists_) {
    // A factor above 1 could make a finite sum infinite.
    if (factors_.multiply_by) {
      list.add_up();
      note_finite(list.to);
      OpenList{list.to, {}}.add_up(factors_);
    } else {
      list.add_up(factors_);
      note_finite(list.to);
    }
    if (!wanted_.norm) continue;
    const TensorList wide = foreach_to(list.to, DType::float64);
    squares_.push_back(foreach_sum(foreach_mul(wide, wide)));
  }
}

void ChunkNorm::note_finite(const TensorList& sums) {
  if (wanted_.finite) finite_ = finite_ * all_finite(sums);
}

// In the order of the shares.
std::vector<double> ChunkNorm::own_sums() const {
  std::array<std::size_t, dtype_count> next{};
  std::vector<double> sums;
  for (const Tensor& chunk : chunks_.to) {
    std::size_t list = 0;
    while (lists_[list].to.impl()->dtype != chunk.dtype()) ++list;
    sums.push_back(squares_[list][next[list]++].item());
  }
  return sums;
}

double ChunkNorm::norm(const std::vector<std::optional<DType>>& dtypes) {
  const std::vector<double> sums = own_sums();
  const auto texts =
      ranks_.gather(std::string(reinterpret_cast<const char*>(sums.data()),
                                sums.size() * sizeof(double)),
                    &RankTraffic::sums);
  std::vector<std::vector<double>> chunks(numels_.size());
  std::vector<std::size_t> next(texts.size());
  for (const Share& each : shares_) {
    if (!dtypes[each.param]) continue;
    for (std::int64_t k = 0; k < chunks_in(each.count); ++k) {
      double one = 0;
      std::size_t& place = next[std::size_t(each.owner)];
      std::memcpy(&one, texts[std::size_t(each.owner)].data() + place,
                  sizeof(one));
      place += sizeof(one);
      chunks[each.param].push_back(one);
    }
  }
  std::optional<double> norm;
  for (std::size_t d = 0; d < dtype_count; ++d) {
    if (std::find(dtypes.begin(), dtypes.end(), DType(d)) == dtypes.end()) {
      continue;
    }
    const double one = std::sqrt(sum_of_squares(DType(d), dtypes, chunks));
    norm = norm ? std::sqrt(*norm * *norm + one * one) : one;
  }
  return norm.value_or(0);
}

double ChunkNorm::sum_of_squares(
    DType dtype, const std::vector<std::optional<DType>>& dtypes,
    const std::vector<std::vector<double>>& chunks) const {
  std::vector<double> tensors;
  for (std::size_t p = 0; p < dtypes.size(); ++p) {
    if (dtypes[p] == dtype) tensors.push_back(joined(chunks[p]));
  }
  return joined(tensors);
}

}  // namespace fuse
