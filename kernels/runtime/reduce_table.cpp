#include "fusebook/runtime/reduce_table.h"

#include <algorithm>

#include "fusebook/ops/reductions.h"
#include "fusebook/runtime/table_parts.h"

namespace fuse {
namespace {

i64 elements_of(const ReducedTensor& tensor, i64 chunk) {
  const i64 begin = chunk * reduction_chunk;
  return std::min(reduction_chunk, tensor.numel - begin);
}

}  // namespace

std::size_t sized_slot(const Body& body, const Instance& instance,
                       const Program& program) {
  std::size_t best = body.slots.size();
  for (std::size_t s = 0; s < body.slots.size(); ++s) {
    if (std::size_t(instance.slots[s]) >= program.slots().size()) continue;
    const bool better =
        best == body.slots.size() || body.slots[s].rate > body.slots[best].rate;
    if (better) best = s;
  }
  return best;
}

void ReduceTable::build(const Plan& plan, const Program& program, int threads) {
  phases_.clear();
  tensors_.clear();
  chunks_.clear();
  lists_.clear();
  parts_.clear();
  operations_.clear();
  places_.clear();
  numbers_ = 0;
  next_ = 0;
  const int last = plan.phases() - 1;
  auto instance = plan.instances.begin();
  for (int phase = 0; phase < last; ++phase) {
    Phase& made = phases_.emplace_back();
    made.lists.begin = i64(lists_.size());
    made.tensors.begin = i64(tensors_.size());
    made.chunks.begin = i64(chunks_.size());
    made.parts.begin = i64(parts_.size());
    for (; instance->phase == phase; ++instance) {
      add_list(plan, program, *instance);
    }
    made.lists.end = i64(lists_.size());
    made.tensors.end = i64(tensors_.size());
    made.chunks.end = i64(chunks_.size());
    share_out_chunks(made.chunks, threads);
    made.parts.end = i64(parts_.size());
  }
}

// Its results lie side by side, each with room for a total behind it.
void ReduceTable::add_list(const Plan& plan, const Program& program,
                           const Instance& instance) {
  const Body& body = plan.bodies[std::size_t(instance.body)];
  const auto sized = instance.slots[sized_slot(body, instance, program)];
  const ListView& sizes = program.lists()[std::size_t(sized)];
  const i64 apart = i64(sizes.count) + 1;
  ReducedList list = {numbers_, i64(sizes.count), 0};
  numbers_ += apart * i64(body.stores.size());
  std::vector<OpCode> operations;
  for (std::size_t k = 0; k < body.stores.size(); ++k) {
    const auto slot = std::size_t(body.stores[k].slot);
    const bool total = body.slots[slot].rate == Rate::uniform;
    const i64 results = list.results + i64(k) * apart;
    const auto result =
        std::size_t(instance.slots[slot]) - program.slots().size();
    if (result >= places_.size()) places_.resize(result + 1);
    places_[result] = {results + (total ? list.count : 0), total};
    if (total) list.totals |= 1U << k;
    operations.push_back(body.nodes[std::size_t(body.stores[k].value)].op);
  }
  operations_.push_back(std::move(operations));
  lists_.push_back(list);
  for (std::size_t e = 0; e < sizes.count; ++e) {
    add_tensor(sizes.numels[e], i64(e), list, instance.body);
  }
}

// A tensor without elements has a chunk without elements.
void ReduceTable::add_tensor(i64 numel, i64 tensor, const ReducedList& list,
                             int body) {
  const i64 chunks =
      std::max<i64>(1, (numel + reduction_chunk - 1) / reduction_chunk);
  for (i64 k = 0; k < chunks; ++k) {
    chunks_.push_back({i64(tensors_.size()), k});
  }
  tensors_.push_back({0, 1, numel, chunks, numbers_, list.results + tensor,
                      list.count + 1, body, 0, int(lists_.size()) - 1});
  if (chunks > 1) numbers_ += chunks * i64(operations_.back().size());
}

void ReduceTable::set_rows(i64 pointers, i64 line, i64 columns) {
  ReducedTensor& tensor = tensors_[next_++];
  tensor.pointers = pointers;
  tensor.line = std::max<i64>(1, line);
  tensor.instance = int(columns);
}

// Contiguous chunks of about equal weight.
void ReduceTable::share_out_chunks(IndexRange chunks, int threads) {
  const auto weight = [&](i64 c) {
    const ReducedChunk& chunk = chunks_[std::size_t(c)];
    return weight_of(
        elements_of(tensors_[std::size_t(chunk.tensor)], chunk.number));
  };
  i64 total = 0;
  for (i64 c = chunks.begin; c < chunks.end; ++c) total += weight(c);
  const i64 shares = count_shares(total, threads);
  i64 before = 0;
  i64 begin = chunks.begin;
  i64 share = 1;
  for (i64 c = chunks.begin; c < chunks.end; ++c) {
    before += weight(c);
    if (c + 1 < chunks.end && before < total * share / shares) continue;
    parts_.push_back({begin, c + 1});
    begin = c + 1;
    while (total * share / shares <= before && share < shares) ++share;
  }
}

void join_results(const ReduceTable& table, const ReduceTable::Phase& phase,
                  double* numbers) {
  const auto tensors = table.tensors();
  i64 t = phase.tensors.begin;
  for (i64 l = phase.lists.begin; l < phase.lists.end; ++l) {
    const ReducedList& list = table.lists()[std::size_t(l)];
    const auto operations = table.operations(std::size_t(l));
    const i64 end = t + list.count;
    for (std::size_t k = 0; k < operations.size(); ++k) {
      with_reduction(operations[k], [&](auto how) {
        for (i64 i = t; i < end; ++i) {
          const ReducedTensor& tensor = tensors[std::size_t(i)];
          if (tensor.chunks == 1) continue;
          numbers[tensor.results + i64(k) * tensor.apart] =
              device::join_numbers(
                  how, numbers + tensor.partials + i64(k) * tensor.chunks,
                  tensor.chunks);
        }
        if ((list.totals >> k & 1U) == 0) return;
        double* const results =
            numbers + list.results + i64(k) * (list.count + 1);
        results[list.count] = device::join_numbers(how, results, list.count);
      });
    }
    t = end;
  }
}

}  // namespace fuse
