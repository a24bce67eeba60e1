#include "fusebook/distributed/ranks.h"

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <thread>

#include "fusebook/distributed/last_word.h"
#include "fusebook/distributed/launcher.h"
#include "fusebook/distributed/mpi_check.h"
#include "fusebook/support/content_hash.h"
#include "fusebook/support/source_place.h"

namespace fuse {
namespace {

std::atomic<int> alive = 0;  // objects of this process
int rank_in_last_call = 0;   // of this process, in the communicator of that
// An exception has left a group, whose other ranks wait.
std::atomic<bool> is_group_left = false;

bool asks(int (*question)(int*)) {
  int answer = 0;
  question(&answer);
  return answer != 0;
}

// A program that leaves in the middle would wait for the others forever.
void end_mpi() {
  if (asks(MPI_Finalized)) return;
  if (alive == 0) {
    MPI_Finalize();
    return;
  }
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  LastWord::say(fmt::format("rank {} has left the run", rank));
  MPI_Abort(MPI_COMM_WORLD, 1);
}

void start_mpi() {
  int provided = MPI_THREAD_SINGLE;
  check_mpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided),
            "MPI_Init_thread");
  std::atexit(end_mpi);
}

// `who` needs it.
void check_threads(const std::string& who) {
  int provided = MPI_THREAD_SINGLE;
  check_mpi(MPI_Query_thread(&provided), "MPI_Query_thread");
  if (provided < MPI_THREAD_FUNNELED) {
    throw Error(who +
                ": MPI was started without threads, and a step uses several; "
                "start it by MPI_Init_thread with MPI_THREAD_FUNNELED");
  }
  if (provided == MPI_THREAD_FUNNELED && !asks(MPI_Is_thread_main)) {
    throw Error(who +
                ": this is not the thread that started MPI; use that one, or "
                "start it with MPI_THREAD_SERIALIZED");
  }
}

void start_unless_done(const std::string& who) {
  if (asks(MPI_Finalized)) throw Error(who + ": MPI has been ended");
  if (!asks(MPI_Initialized)) start_mpi();
}

void check_launcher(std::source_location place) {
  if (const auto other = launched_by_another()) {
    throw Error(fmt::format("Ranks at {}: {}", at(place), told_of(*other)));
  }
}

void end_without_threads() {
  try {
    check_threads("run_ranks");
  } catch (const Error& error) {
    LastWord::say(error.what());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
}

// One of them says it, which ends the others.
int end_alone(const Launched& other) {
  if (other.rank == 0) {
    LastWord::say(told_of(other));
  } else {
    std::this_thread::sleep_for(std::chrono::seconds(5));
  }
  return 1;
}

constexpr const char* leaving = "leave";

const char* kind_of(const RankCall& call) {
  return call.kind == nullptr ? call.name : call.kind;
}

std::uint64_t hash_of(const std::vector<std::string>& facts) {
  std::uint64_t hash = 0;
  for (const std::string& fact : facts) hash = content_hash(fact, hash);
  return hash;
}

// What an action throws, or nothing.
std::string trouble_in(const std::function<void()>& action) {
  try {
    action();
  } catch (const std::exception& error) {
    return *error.what() == '\0' ? "unknown" : error.what();
  }
  return {};
}

std::string place_of(const RankCall& call) {
  return fmt::format("{} at {}", call.name, at(call.place));
}

std::string text_of(const RankCall& call) {
  std::string text = fmt::format("{}\n{}", kind_of(call), place_of(call));
  for (const std::string& fact : call.facts) text += "\n" + fact;
  return text;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

// What rank r does otherwise than rank 0, or nothing.
std::string difference(int r, const std::vector<std::string>& other,
                       const std::vector<std::string>& first) {
  if (first[0] == leaving) {
    return fmt::format("rank 0 has left the run, while rank {} is in {}", r,
                       other[1]);
  }
  if (other[0] == leaving) {
    return fmt::format("rank {} has left the run, while rank 0 is in {}", r,
                       first[1]);
  }
  if (other[0] != first[0]) {
    return fmt::format(
        "rank {} is in {}, but rank 0 is in {}; all ranks must make the same "
        "calls in the same order",
        r, other[1], first[1]);
  }
  for (std::size_t i = 2; i < std::max(first.size(), other.size()); ++i) {
    const std::string here = i < other.size() ? other[i] : "nothing more";
    const std::string there = i < first.size() ? first[i] : "nothing more";
    if (here == there) continue;
    return fmt::format(
        "rank {} has {} in {}, but rank 0 has {}; all ranks must take the same "
        "step",
        r, here, other[1], there);
  }
  return {};
}

}  // namespace

// What is compared first: texts travel only where it differs.
struct Ranks::Digest {
  std::uint64_t call;
  std::uint64_t facts;
  std::uint64_t note;
};

Ranks::Ranks(MPI_Comm communicator, std::source_location place) {
  const std::string who = fmt::format("Ranks at {}", at(place));
  start_unless_done(who);
  check_threads(who);
  check_launcher(place);
  check_mpi(MPI_Comm_dup(communicator, &communicator_), "MPI_Comm_dup");
  join();
}

Ranks::Ranks(Ranks& all, int size, std::source_location place)
    : exceptions_(std::uncaught_exceptions()), is_group_(true) {
  if (size < 1) {
    throw Error(fmt::format(
        "Ranks at {}: a group has at least one rank, not {}", at(place), size));
  }
  all.agree({"Ranks", place, {fmt::format("groups of {}", size)}});
  check_mpi(MPI_Comm_split(all.communicator_, all.rank_ / size, all.rank_,
                           &communicator_),
            "MPI_Comm_split");
  join();
}

void Ranks::join() {
  MPI_Comm_set_errhandler(communicator_, MPI_ERRORS_RETURN);
  MPI_Comm_rank(communicator_, &rank_);
  MPI_Comm_size(communicator_, &size_);
  ++alive;
}

// While an exception leaves a group, its other ranks may be anywhere: nothing
// waits for them here. Then the exception ends the run, or else the next call.
// Nobody waits for one that was alone.
Ranks::~Ranks() {
  const bool is_thrown = std::uncaught_exceptions() > exceptions_;
  const bool has_others = is_group_ && size_ > 1;
  if (has_others && is_thrown && !is_over_ && !all_threw_) {
    is_group_left = true;
    return;
  }
  if (!asks(MPI_Finalized)) {
    if (!is_over_) say_goodbye();
    MPI_Comm_free(&communicator_);
  }
  --alive;
}

// Whoever is about to go on learns of it, instead of waiting.
void Ranks::say_goodbye() noexcept {
  try {
    agree({leaving, {}, {}});
  } catch (const std::exception&) {
    return;  // the others say so
  }
}

std::vector<std::uint64_t> Ranks::agree(const RankCall& call,
                                        std::uint64_t note) {
  return compare(call, exchange_digests(call, note));
}

void Ranks::agree_after(const RankCall& call,
                        const std::function<void()>& tell) {
  const std::string trouble = trouble_in(tell);
  const auto all = exchange_digests(call, trouble.empty() ? 0 : 1);
  const std::uint64_t kind = content_hash(kind_of(call));
  const bool same = std::all_of(all.begin(), all.end(), [&](const Digest& one) {
    return one.call == kind;
  });
  const auto bad = std::find_if(
      all.begin(), all.end(), [](const Digest& one) { return one.note != 0; });
  if (same && bad != all.end()) {
    tell_trouble(call, std::size_t(bad - all.begin()), trouble);
  }
  compare(call, all);
}

std::vector<Ranks::Digest> Ranks::exchange_digests(const RankCall& call,
                                                   std::uint64_t note) {
  if (is_over_) {
    throw Error(place_of(call) + ": a rank has left the run");
  }
  if (is_group_left) end_for_group();
  all_threw_ = false;
  rank_in_last_call = rank_;
  const Digest own = {content_hash(kind_of(call)), hash_of(call.facts), note};
  std::vector<Digest> all(std::size_t(size_), own);
  check_mpi(MPI_Allgather(&own, sizeof(own), MPI_BYTE, all.data(), sizeof(own),
                          MPI_BYTE, communicator_),
            "MPI_Allgather");
  count_call(sizeof(own));
  const std::uint64_t left = content_hash(leaving);
  for (const Digest& each : all) is_over_ = is_over_ || each.call == left;
  return all;
}

std::vector<std::uint64_t> Ranks::compare(const RankCall& call,
                                          const std::vector<Digest>& all) {
  const Digest& own = all[std::size_t(rank_)];
  std::vector<std::uint64_t> notes;
  for (const Digest& each : all) {
    if (each.call != own.call || each.facts != own.facts) explain(call);
    notes.push_back(each.note);
  }
  return notes;
}

void Ranks::end_for_group() const {
  LastWord::say(fmt::format(
      "rank {} of {} has left a group of ranks by an exception, and went on",
      rank_, size_));
  MPI_Abort(MPI_COMM_WORLD, 1);
  std::abort();  // MPI_Abort does not return
}

// One in which each rank sends as many bytes to every other.
void Ranks::count_call(std::size_t bytes) {
  ++traffic_.calls;
  traffic_.messages += size_ - 1;
  traffic_.agreement += std::int64_t(bytes) * (size_ - 1);
}

void Ranks::explain(const RankCall& call) {
  const auto texts = gather(text_of(call), &RankTraffic::agreement);
  const auto first = lines_of(texts[0]);
  all_threw_ = true;
  for (int r = 1; r < size_; ++r) {
    const std::string found =
        difference(r, lines_of(texts[std::size_t(r)]), first);
    if (!found.empty()) throw RanksDisagree(found);
  }
  throw RanksDisagree("ranks differ, but not in what they can tell");
}

void Ranks::together(const RankCall& call,
                     const std::function<void()>& action) {
  const std::string trouble = trouble_in(action);
  const auto notes =
      agree({call.name, call.place, {}}, trouble.empty() ? 0 : 1);
  const auto bad = std::find(notes.begin(), notes.end(), 1U);
  if (bad == notes.end()) return;
  tell_trouble(call, std::size_t(bad - notes.begin()), trouble);
}

void Ranks::tell_trouble(const RankCall& call, std::size_t rank,
                         const std::string& trouble) {
  const auto texts =
      gather(place_of(call) + ": " + trouble, &RankTraffic::agreement);
  all_threw_ = true;
  throw RanksDisagree(fmt::format("rank {} failed in {}", rank, texts[rank]));
}

std::vector<std::string> Ranks::places(const RankCall& call) {
  return gather(place_of(call), &RankTraffic::agreement);
}

void Ranks::or_end(const RankCall& call,
                   const std::function<void()>& action) const {
  try {
    action();
  } catch (const std::exception& error) {
    LastWord::say(fmt::format("rank {} of {} ended the run in {}: {}", rank_,
                              size_, place_of(call), error.what()));
    MPI_Abort(communicator_, 1);
  }
}

std::vector<std::string> Ranks::gather(const std::string& own,
                                       std::int64_t RankTraffic::* counter) {
  const auto ranks = std::size_t(size_);
  const std::uint64_t length = own.size();
  std::vector<std::uint64_t> lengths(ranks);
  check_mpi(MPI_Allgather(&length, 1, MPI_UINT64_T, lengths.data(), 1,
                          MPI_UINT64_T, communicator_),
            "MPI_Allgather");
  count_call(sizeof(length));
  std::vector<std::string> texts(ranks);
  std::vector<std::span<std::byte>> in(ranks);
  std::vector<std::span<const std::byte>> out(ranks);
  for (std::size_t r = 0; r < ranks; ++r) {
    out[r] = std::as_bytes(std::span(own));
    texts[r].resize(lengths[r]);
    in[r] = std::as_writable_bytes(std::span(texts[r]));
  }
  exchange(out, in, counter);
  return texts;
}

int run_ranks(const std::function<int(Ranks&)>& program) {
  try {
    start_unless_done("run_ranks");
  } catch (const Error& error) {
    LastWord::say(error.what());
    return 1;
  }
  if (const auto other = launched_by_another()) return end_alone(*other);
  const LastWord last_word;
  end_without_threads();
  Ranks ranks;
  try {
    return program(ranks);
  } catch (const RanksDisagree& error) {
    // All ranks of a communicator throw it, perhaps on several machines.
    if (rank_in_last_call == 0) LastWord::say(error.what());
    return 1;
  } catch (const std::exception& error) {
    LastWord::say(fmt::format("rank {} of {} ended the run: {}", ranks.rank(),
                              ranks.size(), error.what()));
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  return 1;
}

}  // namespace fuse
