#include "fusebook/distributed/open_sums.h"

#include <algorithm>
#include <array>
#include <utility>

#include "fusebook/foreach/foreach.h"
#include "fusebook/prelude/sums.h"

namespace fuse {
namespace {

TensorList in_dtype(const TensorList& list, DType dtype) {
  return list.impl()->dtype == dtype ? list : foreach_to(list, dtype);
}

void add_chunks(std::vector<Tensor>& chunks, const Tensor& whole) {
  const Tensor row = whole.view({-1});
  for (std::int64_t begin = 0; begin < row.numel(); begin += sum_chunk_size) {
    const auto count =
        std::min<std::int64_t>(sum_chunk_size, row.numel() - begin);
    chunks.push_back(row.narrow(0, begin, count));
  }
}

}  // namespace

void OpenList::add_up(const SumFactors& factors) const {
  if (terms.empty() && !factors.multiply_by && !factors.divide_by) return;
  const DType dtype = to.impl()->dtype;
  TensorList sum = is_new ? in_dtype(terms.front(), dtype) : to;
  for (std::size_t k = is_new ? 1 : 0; k < terms.size(); ++k) {
    sum = foreach_add(sum, in_dtype(terms[k], dtype));
  }
  if (factors.multiply_by) sum = foreach_mul(sum, *factors.multiply_by);
  if (factors.divide_by) sum = foreach_div(sum, *factors.divide_by);
  foreach_copy_(to, sum);
}

OpenList OpenSums::list(TensorList sums,
                        const std::vector<std::size_t>& places) const {
  OpenList found = {std::move(sums), {}, is_new};
  for (const std::vector<Tensor>& term : terms) {
    std::vector<Tensor> parts;
    parts.reserve(places.size());
    for (const std::size_t i : places) parts.push_back(term[i]);
    found.terms.emplace_back(std::move(parts), "gradients");
  }
  return found;
}

std::vector<OpenList> OpenSums::lists() const {
  std::array<std::vector<std::size_t>, dtype_count> places;
  for (std::size_t i = 0; i < to.size(); ++i) {
    if (to[i].defined()) places[std::size_t(to[i].dtype())].push_back(i);
  }
  std::vector<OpenList> found;
  for (const std::vector<std::size_t>& same : places) {
    if (same.empty()) continue;
    std::vector<Tensor> sums;
    sums.reserve(same.size());
    for (const std::size_t i : same) sums.push_back(to[i]);
    found.push_back(list(TensorList(std::move(sums), "sums"), same));
  }
  return found;
}

OpenSums OpenSums::chunks() const {
  OpenSums cut = {{}, std::vector<std::vector<Tensor>>(terms.size()), is_new};
  for (std::size_t i = 0; i < to.size(); ++i) {
    if (!to[i].defined()) continue;
    add_chunks(cut.to, to[i]);
    for (std::size_t k = 0; k < terms.size(); ++k) {
      add_chunks(cut.terms[k], terms[k][i]);
    }
  }
  return cut;
}

}  // namespace fuse
