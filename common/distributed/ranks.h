#pragma once

#include <mpi.h>

#include <cstdint>
#include <functional>
#include <source_location>
#include <span>
#include <string>
#include <vector>

#include "fusebook/support/error.h"

namespace fuse {

/// What all ranks throw, with one message, when they do not do the same: it
/// names a rank, what it does, and where. Nothing has been stored then.
class RanksDisagree : public Error {
 public:
  using Error::Error;
};

/// What a rank is about to do together with all others.
struct RankCall {
  const char* name;                ///< such as "step"; the same on all ranks
  std::source_location place;      ///< for messages; may differ
  std::vector<std::string> facts;  ///< must be the same on all ranks
  /// What is compared instead of the name, for calls that go together.
  const char* kind = nullptr;
};

/// Bytes that this rank has sent to others, and in how many calls.
struct RankTraffic {
  std::int64_t gradients = 0;   ///< gradients, to the owners of their shares
  std::int64_t parameters = 0;  ///< parameters of a step, to everybody
  std::int64_t sums = 0;        ///< sums of chunks, for norms
  /// What keeps the ranks together, such as the parameters that all begin with.
  std::int64_t agreement = 0;
  /// For files: names, kinds of states, and hashes; the states do not travel.
  std::int64_t states = 0;
  std::int64_t calls = 0;      ///< no bytes: calls that send a few to everybody
  std::int64_t exchanges = 0;  ///< no bytes: calls that send any number
  /// No bytes: messages, if each goes straight to its rank.
  std::int64_t messages = 0;

  bool operator==(const RankTraffic&) const = default;
  /// What was sent since.
  RankTraffic operator-(const RankTraffic& earlier) const {
    return {gradients - earlier.gradients, parameters - earlier.parameters,
            sums - earlier.sums,           agreement - earlier.agreement,
            states - earlier.states,       calls - earlier.calls,
            exchanges - earlier.exchanges, messages - earlier.messages};
  }
};

/// The processes of an MPI communicator, which make the same calls in the same
/// order. All members but `rank`, `size`, `communicator` and `traffic` are such
/// calls.
class Ranks {
 public:
  /// Messages of more bytes are sent in pieces.
  static constexpr std::int64_t largest_message = std::int64_t(1) << 30;

  /// Takes part in a copy of `communicator`, on all of its ranks. Starts MPI
  /// unless the program has; then it also ends it, at the end of the program.
  /// Throws Error where MPI was started without support of threads
  /// (MPI_THREAD_FUNNELED or more) or has been ended, and on a thread that MPI
  /// does not know.
  explicit Ranks(MPI_Comm communicator = MPI_COMM_WORLD,
                 std::source_location place = std::source_location::current());
  /// Takes part in a group of `size` ranks of `all`, which follow each other; the
  /// last group may be smaller. All ranks of `all` call it. Throws Error unless
  /// the size is at least 1, and RanksDisagree if it is not the same on all. An
  /// exception that leaves a group must end the program: other ranks may wait.
  Ranks(Ranks& all, int size,
        std::source_location place = std::source_location::current());
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;
  /// Tells the others, which throw if they were about to go on.
  ~Ranks();

  /// Number of this process, from 0.
  int rank() const { return rank_; }
  /// Number of processes.
  int size() const { return size_; }
  /// Its own copy of the communicator, for calls of MPI.
  MPI_Comm communicator() const { return communicator_; }
  /// What was sent so far.
  const RankTraffic& traffic() const { return traffic_; }

  /// Returns the notes of all ranks, if all make the same call with the same
  /// facts. Throws RanksDisagree on all of them otherwise.
  std::vector<std::uint64_t> agree(const RankCall& call,
                                   std::uint64_t note = 0);
  /// Runs `tell`, which may add to the facts of `call`, and compares them. If it
  /// throws on one rank, all throw that.
  void agree_after(const RankCall& call, const std::function<void()>& tell);
  /// What each rank is doing and where: "step at training.cpp:20".
  std::vector<std::string> places(const RankCall& call);
  /// Throws, on all ranks, what `action` threw on one of them.
  void together(const RankCall& call, const std::function<void()>& action);
  /// Runs what cannot be taken back once it has begun: an exception ends all
  /// ranks, with one line that says which rank and why.
  void or_end(const RankCall& call, const std::function<void()>& action) const;

  /// Sends `out[r]` to rank r, whose `in` at this rank's place it fills; sizes
  /// must match. `counter` grows by what went to others. Nothing is copied where
  /// a rank's own `in` and `out` are the same memory.
  void exchange(std::span<const std::span<const std::byte>> out,
                std::span<const std::span<std::byte>> in,
                std::int64_t RankTraffic::* counter);
  /// The same in stretches, which lie anywhere; each is a message of its own, and
  /// nothing is known of the others' before. A rank has none for itself.
  void exchange_stretches(
      std::span<const std::vector<std::span<const std::byte>>> out,
      std::span<const std::vector<std::span<std::byte>>> in,
      std::int64_t RankTraffic::* counter);
  /// Overwrites the bytes of all ranks with those of rank 0.
  void send_from_first(std::span<std::byte> bytes,
                       std::int64_t RankTraffic::* counter);
  /// The texts of all ranks.
  std::vector<std::string> gather(const std::string& own,
                                  std::int64_t RankTraffic::* counter);
  /// Sends the bytes of one rank to another; nothing happens on others, nor if
  /// both are one. All ranks make such calls in one order.
  void hand_on(std::span<std::byte> bytes, int from, int to,
               std::int64_t RankTraffic::* counter);
  /// For tests: messages longer than this are sent in pieces.
  void set_largest_message(std::int64_t bytes) { largest_ = bytes; }

 private:
  struct Digest;

  void join();
  std::vector<Digest> exchange_digests(const RankCall& call,
                                       std::uint64_t note);
  std::vector<std::uint64_t> compare(const RankCall& call,
                                     const std::vector<Digest>& all);
  [[noreturn]] void tell_trouble(const RankCall& call, std::size_t rank,
                                 const std::string& trouble);
  [[noreturn]] void explain(const RankCall& call);
  [[noreturn]] void end_for_group() const;
  void say_goodbye() noexcept;
  void count_call(std::size_t bytes);
  void count_exchange(std::span<const std::span<const std::byte>> out,
                      std::int64_t RankTraffic::* counter);
  void exchange_in_pieces(std::span<const std::span<const std::byte>> out,
                          std::span<const std::span<std::byte>> in) const;
  void exchange_at_once(std::span<const std::span<const std::byte>> out,
                        std::span<const std::span<std::byte>> in) const;

  MPI_Comm communicator_ = MPI_COMM_NULL;
  int rank_ = 0;
  int size_ = 1;
  int exceptions_ = 0;  // thrown and not yet caught when it was made
  bool is_group_ = false;
  bool is_over_ = false;    // somebody has left
  bool all_threw_ = false;  // in the last call
  std::int64_t largest_ = largest_message;
  RankTraffic traffic_;
};

/// Runs a program on all ranks of MPI_COMM_WORLD and returns its exit code. Of
/// an exception, one line tells the rank and the message, and all ranks end; the
/// same if one is killed, of which another one learns by the signal SIGTERM:
///
///     int main() { return fuse::run_ranks(training); }
///
int run_ranks(const std::function<int(Ranks&)>& program);

}  // namespace fuse
