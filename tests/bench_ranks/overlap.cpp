#include "bench_ranks/overlap.h"

#include <cstdint>
#include <functional>
#include <vector>

#include "bench_ranks/together.h"
#include "fusebook/bench/benchmark.h"
#include "fusebook/distributed/mpi_check.h"

namespace fuse::bench {
namespace {

constexpr std::int64_t bytes_sent = std::int64_t(1) << 24;

// Each rank sends a part to every other, as an exchange of a step does.
class Exchange {
 public:
  explicit Exchange(Ranks& ranks)
      : ranks_(ranks),
        part_(std::size_t(bytes_sent) / std::size_t(ranks.size())),
        out_(part_ * std::size_t(ranks.size()), std::byte(1)),
        in_(out_.size()) {}

  void begin() {
    for (int k = 1; k < ranks_.size(); ++k) {
      const int from = (ranks_.rank() + ranks_.size() - k) % ranks_.size();
      check_mpi(MPI_Irecv(in_.data() + std::size_t(from) * part_, int(part_),
                          MPI_BYTE, from, 0, ranks_.communicator(),
                          &requests_.emplace_back()),
                "MPI_Irecv");
    }
    for (int k = 1; k < ranks_.size(); ++k) {
      const int to = (ranks_.rank() + k) % ranks_.size();
      check_mpi(
          MPI_Isend(out_.data() + std::size_t(to) * part_, int(part_), MPI_BYTE,
                    to, 0, ranks_.communicator(), &requests_.emplace_back()),
          "MPI_Isend");
    }
  }
  void wait() {
    check_mpi(MPI_Waitall(int(requests_.size()), requests_.data(),
                          MPI_STATUSES_IGNORE),
              "MPI_Waitall");
    requests_.clear();
  }

 private:
  Ranks& ranks_;
  std::size_t part_;
  std::vector<std::byte> out_;
  std::vector<std::byte> in_;
  std::vector<MPI_Request> requests_;
};

// Arithmetic without memory, so that nothing but the core is shared.
void compute(std::int64_t turns) {
  volatile std::uint64_t kept = 1;
  std::uint64_t x = kept;
  for (std::int64_t i = 0; i < turns; ++i) x = x * 0x9e3779b97f4a7c15 + 1;
  kept = x;
}

double median_us(Ranks& ranks, int rounds, const std::function<void()>& call) {
  std::vector<double> seconds;
  for (int round = 0; round < rounds; ++round) {
    seconds.push_back(seconds_together(ranks, 1, call));
  }
  return Measurement(1, seconds).median_us();
}

// As much as takes so long.
std::int64_t turns_for(double us) {
  constexpr std::int64_t some = 1 << 20;
  const double begin = steady_seconds();
  compute(some);
  return std::int64_t(double(some) * us / (1e6 * (steady_seconds() - begin)));
}

}  // namespace

Overlap measure_overlap(Ranks& ranks, int rounds) {
  Exchange exchange(ranks);
  const auto exchanged = [&] {
    exchange.begin();
    exchange.wait();
  };
  exchanged();  // maps the memory
  Overlap found;
  found.exchange_us = median_us(ranks, rounds, exchanged);
  const std::int64_t turns = turns_for(found.exchange_us);
  found.work_us = median_us(ranks, rounds, [&] { compute(turns); });
  found.both_us = median_us(ranks, rounds, [&] {
    exchange.begin();
    compute(turns);
    exchange.wait();
  });
  return found;
}

}  // namespace fuse::bench
