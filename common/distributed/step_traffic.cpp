#include "fusebook/distributed/step_traffic.h"

#include <algorithm>

#include "fusebook/distributed/parcel.h"
#include "fusebook/prelude/sums.h"

namespace fuse {
namespace {

std::int64_t in_parts_of(std::int64_t part, std::int64_t count) {
  return (count + part - 1) / part;
}

// Each member is a thing that a step does.
struct Sender {
  std::int64_t others;
  RankTraffic sent = {};

  // A few bytes, to everybody.
  void call(std::int64_t bytes) {
    ++sent.calls;
    sent.messages += others;
    sent.agreement += bytes * others;
  }
  void message(std::int64_t bytes, std::int64_t RankTraffic::* counter) {
    sent.*counter += bytes;
    sent.messages += in_parts_of(Ranks::largest_message, bytes);
  }
  // What all are about to do: three hashes.
  void agree() { call(24); }
  // Any number of bytes, once all know the largest message.
  void begin_exchange() {
    call(8);
    ++sent.exchanges;
  }
  void send_to_all(std::int64_t bytes, std::int64_t RankTraffic::* counter) {
    begin_exchange();
    for (std::int64_t k = 0; k < others; ++k) message(bytes, counter);
  }
  // The same where the others do not know how many.
  void gather(std::int64_t bytes, std::int64_t RankTraffic::* counter) {
    call(8);
    send_to_all(bytes, counter);
  }
};

}  // namespace

std::int64_t PlannedStep::gradients(int ranks) const {
  return adds_up ? std::min<std::int64_t>(ranks, micro_gradients)
                 : micro_gradients;
}

std::int64_t PlannedStep::rounds(int ranks) const {
  return in_parts_of(ranks, gradients(ranks));
}

StepTraffic::StepTraffic(const std::vector<Share>& shares,
                         const std::vector<DType>& dtypes, int ranks)
    : ranks_(ranks),
      shares_(shares),
      dtypes_(dtypes),
      chunks_(std::size_t(ranks)),
      params_(loads({})) {
  for (const Share& each : shares_) {
    chunks_[std::size_t(each.owner)] += in_parts_of(sum_chunk_size, each.count);
  }
}

// Of each rank; large shares are messages of their own, small ones share one.
std::vector<StepTraffic::Load> StepTraffic::loads(
    std::optional<DType> sent_as) const {
  std::vector<Load> found;
  found.resize(std::size_t(ranks_));
  std::vector<std::int64_t> small(found.size());
  for (const Share& each : shares_) {
    std::size_t size = size_of(dtypes_[each.param]);
    if (sent_as) size = std::min(size, size_of(*sent_as));
    const std::int64_t bytes = each.count * std::int64_t(size);
    const auto owner = std::size_t(each.owner);
    found[owner].bytes += bytes;
    if (bytes < Parcel::least_large) {
      small[owner] += bytes;
    } else {
      found[owner].messages += in_parts_of(Ranks::largest_message, bytes);
    }
  }
  for (std::size_t r = 0; r < small.size(); ++r) {
    found[r].messages += in_parts_of(Ranks::largest_message, small[r]);
  }
  return found;
}

RankTraffic StepTraffic::of(const PlannedStep& step, int rank) const {
  const auto me = std::size_t(rank);
  const auto gradients = loads(step.gradients_as);
  Sender sender = {ranks_ - 1};
  for (std::int64_t round = 0; round < step.rounds(ranks_); ++round) {
    sender.agree();
    sender.gather(std::int64_t(dtypes_.size()),
                  &RankTraffic::agreement);  // which have gradients
    ++sender.sent.exchanges;
    if (round * ranks_ + rank >= step.gradients(ranks_)) continue;
    for (std::size_t r = 0; r < gradients.size(); ++r) {
      if (r == me) continue;
      sender.sent.gradients += gradients[r].bytes;
      sender.sent.messages += gradients[r].messages;
    }
  }
  sender.agree();  // there are no more of them
  sender.agree();  // on the step
  if (step.skips_nonfinite) sender.agree();
  if (step.clips) sender.gather(chunks_[me] * 8, &RankTraffic::sums);
  sender.agree();  // nobody failed
  ++sender.sent.exchanges;
  sender.sent.parameters += params_[me].bytes * (ranks_ - 1);
  sender.sent.messages += params_[me].messages * (ranks_ - 1);
  return sender.sent;
}

std::int64_t StepTraffic::own_bytes(int rank) const {
  return params_[std::size_t(rank)].bytes;
}

}  // namespace fuse
