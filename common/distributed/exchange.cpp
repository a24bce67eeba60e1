// How bytes travel between ranks.
#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <string>

#include "fusebook/distributed/mpi_check.h"
#include "fusebook/distributed/ranks.h"

namespace fuse {
namespace {

// From the first to the last byte of them.
template <class Byte>
struct Range {
  Byte* begin = nullptr;
  std::int64_t bytes = 0;
};

template <class Byte>
Range<Byte> range_of(std::span<const std::span<Byte>> spans) {
  Byte* begin = nullptr;
  Byte* end = nullptr;
  for (const std::span<Byte>& each : spans) {
    if (each.empty()) continue;
    Byte* const last = each.data() + each.size();
    begin = begin == nullptr ? each.data() : std::min(begin, each.data());
    end = end == nullptr ? last : std::max(end, last);
  }
  return {begin, end - begin};
}

// Where they lie, as MPI wants it; what a rank has for itself stays.
template <class Byte>
struct Places {
  Places(std::span<const std::span<Byte>> spans, int rank)
      : base(range_of(spans).begin) {
    for (std::size_t r = 0; r < spans.size(); ++r) {
      const bool goes = int(r) != rank && !spans[r].empty();
      counts.push_back(goes ? int(spans[r].size()) : 0);
      places.push_back(goes ? int(spans[r].data() - base) : 0);
    }
  }

  Byte* base;
  std::vector<int> counts;
  std::vector<int> places;
};

// From rank to rank, in pieces that MPI can count.
class Messages {
 public:
  Messages(MPI_Comm communicator, std::int64_t largest)
      : communicator_(communicator),
        piece_(std::size_t(std::min<std::int64_t>(
            largest, std::numeric_limits<int>::max()))) {}

  void take(std::span<std::byte> to, int rank) {
    for (std::size_t done = 0; done < to.size(); done += piece_) {
      check_mpi(MPI_Irecv(to.data() + done,
                          int(std::min(piece_, to.size() - done)), MPI_BYTE,
                          rank, 0, communicator_, &requests_.emplace_back()),
                "MPI_Irecv");
    }
  }
  // How many there are.
  std::int64_t send(std::span<const std::byte> from, int rank) {
    const std::size_t before = requests_.size();
    for (std::size_t done = 0; done < from.size(); done += piece_) {
      check_mpi(MPI_Isend(from.data() + done,
                          int(std::min(piece_, from.size() - done)), MPI_BYTE,
                          rank, 0, communicator_, &requests_.emplace_back()),
                "MPI_Isend");
    }
    return std::int64_t(requests_.size() - before);
  }
  void wait() {
    check_mpi(MPI_Waitall(int(requests_.size()), requests_.data(),
                          MPI_STATUSES_IGNORE),
              "MPI_Waitall");
  }

 private:
  MPI_Comm communicator_;
  std::size_t piece_;
  std::vector<MPI_Request> requests_;
};

}  // namespace

void check_mpi(int code, const char* call) {
  if (code == MPI_SUCCESS) return;
  std::string text(MPI_MAX_ERROR_STRING, '\0');
  int length = 0;
  MPI_Error_string(code, text.data(), &length);
  text.resize(std::size_t(length));
  throw Error(fmt::format("{} failed: {}", call, text));
}

void Ranks::send_from_first(std::span<std::byte> bytes,
                            std::int64_t RankTraffic::* counter) {
  const auto piece = std::size_t(
      std::min<std::int64_t>(largest_, std::numeric_limits<int>::max()));
  for (std::size_t done = 0; done < bytes.size(); done += piece) {
    const auto count = int(std::min(piece, bytes.size() - done));
    check_mpi(MPI_Bcast(bytes.data() + done, count, MPI_BYTE, 0, communicator_),
              "MPI_Bcast");
  }
  if (rank_ == 0) traffic_.*counter += std::int64_t(bytes.size()) * (size_ - 1);
}

void Ranks::hand_on(std::span<std::byte> bytes, int from, int to,
                    std::int64_t RankTraffic::* counter) {
  if (from == to || (rank_ != from && rank_ != to)) return;
  Messages messages(communicator_, largest_);
  if (rank_ == from) {
    traffic_.*counter += std::int64_t(bytes.size());
    traffic_.messages += messages.send(bytes, to);
  } else {
    messages.take(bytes, from);
  }
  messages.wait();
}

void Ranks::count_exchange(std::span<const std::span<const std::byte>> out,
                           std::int64_t RankTraffic::* counter) {
  ++traffic_.exchanges;
  for (std::size_t r = 0; r < out.size(); ++r) {
    if (int(r) == rank_) continue;
    const auto bytes = std::int64_t(out[r].size());
    traffic_.*counter += bytes;
    traffic_.messages += (bytes + largest_ - 1) / largest_;
  }
}

void Ranks::exchange(std::span<const std::span<const std::byte>> out,
                     std::span<const std::span<std::byte>> in,
                     std::int64_t RankTraffic::* counter) {
  const std::int64_t most = std::max(range_of(out).bytes, range_of(in).bytes);
  std::int64_t largest = 0;
  check_mpi(
      MPI_Allreduce(&most, &largest, 1, MPI_INT64_T, MPI_MAX, communicator_),
      "MPI_Allreduce");
  count_call(sizeof(largest));
  count_exchange(out, counter);
  const auto me = std::size_t(rank_);
  if (in[me].data() != out[me].data()) {
    std::copy(out[me].begin(), out[me].end(), in[me].begin());
  }
  if (largest > largest_) {
    exchange_in_pieces(out, in);
  } else {
    exchange_at_once(out, in);
  }
}

void Ranks::exchange_at_once(std::span<const std::span<const std::byte>> out,
                             std::span<const std::span<std::byte>> in) const {
  const Places<const std::byte> sent(out, rank_);
  const Places<std::byte> arrived(in, rank_);
  check_mpi(MPI_Alltoallv(sent.base, sent.counts.data(), sent.places.data(),
                          MPI_BYTE, arrived.base, arrived.counts.data(),
                          arrived.places.data(), MPI_BYTE, communicator_),
            "MPI_Alltoallv");
}

// MPI counts in int: what is longer, or lies too far apart, goes from rank to rank.
void Ranks::exchange_in_pieces(std::span<const std::span<const std::byte>> out,
                               std::span<const std::span<std::byte>> in) const {
  Messages messages(communicator_, largest_);
  for (int r = 0; r < size_; ++r) {
    if (r != rank_) messages.take(in[std::size_t(r)], r);
  }
  for (int r = 0; r < size_; ++r) {
    if (r != rank_) messages.send(out[std::size_t(r)], r);
  }
  messages.wait();
}

// Each rank begins with the one behind it, so that not all send to the same.
void Ranks::exchange_stretches(
    std::span<const std::vector<std::span<const std::byte>>> out,
    std::span<const std::vector<std::span<std::byte>>> in,
    std::int64_t RankTraffic::* counter) {
  ++traffic_.exchanges;
  Messages messages(communicator_, largest_);
  for (int k = 1; k < size_; ++k) {
    const int from = (rank_ + size_ - k) % size_;
    for (const auto& each : in[std::size_t(from)]) messages.take(each, from);
  }
  for (int k = 1; k < size_; ++k) {
    const int to = (rank_ + k) % size_;
    for (const auto& each : out[std::size_t(to)]) {
      traffic_.*counter += std::int64_t(each.size());
      traffic_.messages += messages.send(each, to);
    }
  }
  messages.wait();
}

}  // namespace fuse
