#include "fusebook/distributed/step_traffic.h"

#include <algorithm>

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
      params_(std::int64_t(dtypes.size())),
      bytes_(std::size_t(ranks)),
      chunks_(std::size_t(ranks)) {
  for (const Share& each : shares) {
    const auto owner = std::size_t(each.owner);
    bytes_[owner] += each.count * std::int64_t(size_of(dtypes[each.param]));
    chunks_[owner] += in_parts_of(sum_chunk_size, each.count);
  }
}

RankTraffic StepTraffic::of(const PlannedStep& step, int rank) const {
  const auto me = std::size_t(rank);
  Sender sender = {ranks_ - 1};
  for (std::int64_t round = 0; round < step.rounds(ranks_); ++round) {
    sender.agree();
    sender.gather(params_, &RankTraffic::agreement);  // which have gradients
    sender.begin_exchange();
    if (round * ranks_ + rank >= step.gradients(ranks_)) continue;
    for (std::size_t r = 0; r < bytes_.size(); ++r) {
      if (r != me) sender.message(bytes_[r], &RankTraffic::gradients);
    }
  }
  sender.agree();  // there are no more of them
  sender.agree();  // on the step
  if (step.skips_nonfinite) sender.agree();
  if (step.clips) sender.gather(chunks_[me] * 8, &RankTraffic::sums);
  sender.agree();  // nobody failed
  sender.send_to_all(bytes_[me], &RankTraffic::parameters);
  return sender.sent;
}

std::int64_t StepTraffic::own_bytes(int rank) const {
  return bytes_[std::size_t(rank)];
}

}  // namespace fuse
