#include "fusebook/bench/bandwidth.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <utility>

#include "fusebook/bench/benchmark.h"
#include "fusebook/bench/quick_times.h"
#include "fusebook/runtime/parallel_for.h"
#include "fusebook/support/error.h"

namespace fuse {
namespace {

constexpr int most_arrays = 8;
/// Work is split only between groups of this many elements (one cache line of
/// every array), and no thread gets less than a few kilobytes.
constexpr std::int64_t line_length = 16;
constexpr std::int64_t least_elements = 2048;

/// Memory is asked for so many tensors ahead, and so many elements of each. What a
/// core's own cache holds needs no asking.
constexpr std::size_t tensors_ahead = 8;
constexpr std::int64_t most_asked = 4 * line_length;
constexpr std::int64_t cached_elements = 1 << 19;

/// Within a tensor, this far ahead where memory is asked for: hardware fetches
/// ahead to the end of a page, and the next page's first elements come too late.
constexpr std::int64_t asked_ahead = 32 * line_length;

/// Different for arrays of one tensor and for neighbours, up to 2 KiB.
constexpr std::size_t most_lines_apart = 32;

using Bits = std::uint32_t;
using Width = AccessPattern::Width;
using Addresses = float* const*;
/// Of a tensor, and of one that comes soon: none if that is null.
using Pass = void (*)(Addresses, Addresses soon, Bits flips, std::int64_t begin,
                      std::int64_t end);

using Vector32 [[gnu::vector_size(32)]] = Bits;
using Vector64 [[gnu::vector_size(64)]] = Bits;

/// Addresses that no store can alias, so that they stay in registers.
template <int Reads>
struct Arrays {
  float* at[Reads];
};

/// Makes the compiler load what a pass without stores has no use for.
template <class Vector>
[[gnu::always_inline]] inline void keep(const Vector& loaded) {
  asm volatile("" : : "m"(loaded));
}

/// The elements of one vector starting at `i`, unrolled for every array: in a
/// loop, compilers keep the values on the stack. They cannot know that the
/// stored bits are those already there.
template <class Vector, int Writes, int... k>
[[gnu::always_inline]] inline void sweep_at(
    const Arrays<int(sizeof...(k))>& arrays, Bits flips, std::int64_t i,
    Vector& seen, std::integer_sequence<int, k...>) {
  Vector values[sizeof...(k)];
  (std::memcpy(&values[k], arrays.at[k] + i, sizeof(Vector)), ...);
  const Vector turned = (values[k] ^ ...) & flips;
  if constexpr (Writes == 0) seen ^= turned;
  ((k < Writes ? void(values[k] ^= turned) : void()), ...);
  ((k < Writes ? void(std::memcpy(arrays.at[k] + i, &values[k], sizeof(Vector)))
               : void()),
   ...);
}

/// Asks for memory, as kernels do: processors do not foresee where the next tensor
/// lies.
template <int... k>
[[gnu::always_inline]] inline void prefetch(Addresses addresses, std::int64_t i,
                                            std::integer_sequence<int, k...>) {
  (__builtin_prefetch(addresses[k] + i), ...);
}

/// `ahead` elements ahead, if any.
template <class Vector, int Reads, int Writes, std::int64_t ahead = 0>
[[gnu::always_inline]] inline void sweep(Addresses addresses, Addresses soon,
                                         Bits flips, std::int64_t begin,
                                         std::int64_t end) {
  constexpr auto vector_length = std::int64_t(sizeof(Vector) / sizeof(float));
  constexpr std::make_integer_sequence<int, Reads> all;
  Arrays<Reads> arrays{};
  std::copy_n(addresses, Reads, arrays.at);
  Vector seen{};
  Bits last = 0;
  std::int64_t i = begin;
  if (soon != nullptr) {
    for (; i + vector_length <= std::min(end, most_asked); i += vector_length) {
      prefetch(soon, i, all);
      sweep_at<Vector, Writes>(arrays, flips, i, seen, all);
    }
  }
  for (; i + vector_length <= end; i += vector_length) {
    if constexpr (ahead > 0) prefetch(arrays.at, i + ahead, all);
    sweep_at<Vector, Writes>(arrays, flips, i, seen, all);
  }
  for (; i < end; ++i) sweep_at<Bits, Writes>(arrays, flips, i, last, all);
  if constexpr (Writes == 0) {
    keep(seen);
    keep(last);
  }
}

template <int Reads, int Writes>
void sweep_plain(Addresses arrays, Addresses soon, Bits flips,
                 std::int64_t begin, std::int64_t end) {
  sweep<Vector32, Reads, Writes>(arrays, soon, flips, begin, end);
}

template <int Reads, int Writes>
void sweep_plain_ahead(Addresses arrays, Addresses soon, Bits flips,
                       std::int64_t begin, std::int64_t end) {
  sweep<Vector64, Reads, Writes, asked_ahead>(arrays, soon, flips, begin, end);
}

#if defined(__x86_64__) && defined(__GNUC__)
template <int Reads, int Writes>
[[gnu::target("avx2")]] void sweep_avx2(Addresses arrays, Addresses soon,
                                        Bits flips, std::int64_t begin,
                                        std::int64_t end) {
  sweep<Vector32, Reads, Writes>(arrays, soon, flips, begin, end);
}

/// A vector is a line of memory.
template <int Reads, int Writes>
[[gnu::target("avx2")]] void sweep_avx2_ahead(Addresses arrays, Addresses soon,
                                              Bits flips, std::int64_t begin,
                                              std::int64_t end) {
  sweep<Vector64, Reads, Writes, asked_ahead>(arrays, soon, flips, begin, end);
}

template <int Reads, int Writes>
[[gnu::target("avx512f")]] void sweep_avx512(Addresses arrays, Addresses soon,
                                             Bits flips, std::int64_t begin,
                                             std::int64_t end) {
  sweep<Vector64, Reads, Writes>(arrays, soon, flips, begin, end);
}

template <int Reads, int Writes>
[[gnu::target("avx512f")]] void sweep_avx512_ahead(Addresses arrays,
                                                   Addresses soon, Bits flips,
                                                   std::int64_t begin,
                                                   std::int64_t end) {
  sweep<Vector64, Reads, Writes, asked_ahead>(arrays, soon, flips, begin, end);
}

template <int Reads, int Writes>
Pass best_sweep(Width width) {
  const bool avx2 = __builtin_cpu_supports("avx2");
  if (width != Width::bytes32 && __builtin_cpu_supports("avx512f")) {
    return width == Width::bytes64 ? sweep_avx512<Reads, Writes>
                                   : sweep_avx512_ahead<Reads, Writes>;
  }
  if (width == Width::bytes64_ahead) {
    return avx2 ? sweep_avx2_ahead<Reads, Writes>
                : sweep_plain_ahead<Reads, Writes>;
  }
  return avx2 ? sweep_avx2<Reads, Writes> : sweep_plain<Reads, Writes>;
}
#else
template <int Reads, int Writes>
Pass best_sweep(Width width) {
  return width == Width::bytes64_ahead ? sweep_plain_ahead<Reads, Writes>
                                       : sweep_plain<Reads, Writes>;
}
#endif

template <int Reads, int... Writes>
Pass pass_with_writes(int writes, Width width,
                      std::integer_sequence<int, Writes...>) {
  Pass pass = nullptr;
  ((writes == Writes ? void(pass = best_sweep<Reads, Writes>(width)) : void()),
   ...);
  return pass;
}

template <int... Reads>
Pass find_pass(int reads, int writes, Width width,
               std::integer_sequence<int, Reads...>) {
  Pass pass = nullptr;
  ((reads == Reads + 1
        ? void(pass = pass_with_writes<Reads + 1>(
                   writes, width, std::make_integer_sequence<int, Reads + 2>()))
        : void()),
   ...);
  return pass;
}

bool can_be_swept(const Tensor& tensor, std::int64_t size) {
  return tensor.defined() && tensor.numel() == size && tensor.is_contiguous() &&
         tensor.dtype() == DType::float32 && tensor.device().is_cpu();
}

}  // namespace

struct AccessPattern::Sweep {
  Pass pass;
  Bits flips;
};

AccessPattern::AccessPattern(std::vector<std::int64_t> sizes, int reads,
                             int writes, Bases bases)
    : sizes_(std::move(sizes)), reads_(reads), writes_(writes), bases_(bases) {
  check();
  add_sizes();
  const std::int64_t room = bases == Bases::staggered
                                ? std::int64_t(most_lines_apart) * line_length
                                : 0;
  if (!default_device().is_cpu()) {
    from_ = zeros({total_ * (reads + writes) / 2});
    to_ = zeros(from_.shape());
    return;
  }
  arrays_.resize(std::size_t(reads));
  for (auto& array : arrays_) {
    for (const std::int64_t size : sizes_)
      array.push_back(zeros({size + room}));
  }
  add_addresses();
}

AccessPattern::AccessPattern(std::vector<std::vector<Tensor>> arrays,
                             int writes)
    : reads_(int(arrays.size())),
      writes_(writes),
      bases_(Bases::allocated),
      arrays_(std::move(arrays)) {
  check();
  for (const Tensor& tensor : arrays_[0]) {
    sizes_.push_back(tensor.defined() ? tensor.numel() : 0);
  }
  for (const auto& array : arrays_) {
    const bool good = std::equal(array.begin(), array.end(), sizes_.begin(),
                                 sizes_.end(), can_be_swept);
    if (good) continue;
    throw Error(
        "an access pattern over tensors needs contiguous float32 tensors in "
        "host memory, and lists with the same sizes");
  }
  add_sizes();
  add_addresses();
}

void AccessPattern::check() const {
  const bool reads = 1 <= reads_ && reads_ <= most_arrays;
  if (reads && 0 <= writes_ && writes_ <= reads_) return;
  throw Error(fmt::format(
      "invalid access pattern of {} reads and {} writes; 1 <= reads <= 8 and "
      "0 <= writes <= reads must hold",
      reads_, writes_));
}

void AccessPattern::check_there(std::source_location call) const {
  if (!arrays_.empty() || to_.defined()) return;
  refuse_moved_from(call, "the pattern");
}

const Tensor& AccessPattern::array(std::size_t read, std::size_t index) const {
  check_there();
  if (read < arrays_.size() && index < arrays_[read].size()) {
    return arrays_[read][index];
  }
  throw Error(fmt::format(
      "AccessPattern::array: array {} of tensor {} is out of range, or not in "
      "host memory",
      read, index));
}

void AccessPattern::add_sizes() {
  for (const std::int64_t size : sizes_) {
    starts_.push_back(total_);
    total_ += size;
  }
}

// Looking them up in the tensors during a pass would take longer, for small
// ones, than a step does.
void AccessPattern::add_addresses() {
  addresses_.reserve(sizes_.size() * arrays_.size());
  for (std::size_t i = 0; i < sizes_.size(); ++i) {
    for (std::size_t read = 0; read < arrays_.size(); ++read) {
      auto* base = static_cast<float*>(arrays_[read][i].raw_data());
      if (bases_ == Bases::staggered) {
        const std::size_t lines = (read * 9 + i * 5) % most_lines_apart;
        base += lines * std::size_t(line_length);
      }
      addresses_.push_back(base);
    }
  }
}

void AccessPattern::run_range(const Sweep& sweep, std::int64_t begin,
                              std::int64_t end) const {
  const auto after = std::upper_bound(starts_.begin(), starts_.end(), begin);
  auto i = std::size_t(after - starts_.begin()) - 1;
  const bool far = total_ * reads_ > cached_elements;
  for (; i < sizes_.size() && starts_[i] < end; ++i) {
    const std::size_t next = i + tensors_ahead;
    const Addresses soon =
        far && next < sizes_.size() && sizes_[next] >= sizes_[i]
            ? &addresses_[next * arrays_.size()]
            : nullptr;
    sweep.pass(&addresses_[i * arrays_.size()], soon, sweep.flips,
               std::max<std::int64_t>(begin - starts_[i], 0),
               std::min(end - starts_[i], sizes_[i]));
  }
}

void AccessPattern::run(Width width, std::uint32_t flips) const {
  check_there();
  if (to_.defined()) {
    Tensor(to_).copy_(from_);
    return;
  }
  const Sweep sweep = {
      find_pass(reads_, writes_, width,
                std::make_integer_sequence<int, most_arrays>()),
      flips};
  const std::int64_t lines = (total_ + line_length - 1) / line_length;
  parallel_for(lines, least_elements / line_length,
               [&](std::int64_t begin, std::int64_t end) {
                 if (begin == end) return;
                 run_range(sweep, begin * line_length,
                           std::min(end * line_length, total_));
               });
}

std::int64_t AccessPattern::bytes() const {
  check_there();
  return total_ * std::int64_t(sizeof(float)) * (reads_ + writes_);
}

TrafficLimit::TrafficLimit(const std::vector<std::int64_t>& sizes, int reads,
                           int writes) {
  struct Way {
    std::shared_ptr<AccessPattern> pattern;
    AccessPattern::Width width;
  };
  std::vector<Way> ways;
  std::vector<std::function<void()>> passes;
  for (const auto bases :
       {AccessPattern::Bases::allocated, AccessPattern::Bases::staggered}) {
    const auto pattern =
        std::make_shared<AccessPattern>(sizes, reads, writes, bases);
    for (const auto width : AccessPattern::widths) {
      ways.push_back({pattern, width});
      passes.emplace_back([pattern, width] { pattern->run(width); });
    }
    // On a GPU it is a copy, so bases do not matter; quick times do not tell which
    // is the fastest.
    if (!default_device().is_cpu() || times_are_quick()) break;
  }
  const auto times = interleaved(passes, {.min_run_time_s = 0.1});
  const auto fastest = std::min_element(
      times.begin(), times.end(),
      [](const auto& a, const auto& b) { return a.median() < b.median(); });
  const Way& best = ways[fastest - times.begin()];
  pattern_ = best.pattern;
  width_ = best.width;
}

void TrafficLimit::run() const {
  if (pattern_ == nullptr) {
    refuse_moved_from(std::source_location::current(), "the limit");
  }
  pattern_->run(width_);
}

double bandwidth_limit_us(const std::vector<std::int64_t>& sizes, int reads,
                          int writes, double min_run_time_s) {
  const AccessPattern pattern(sizes, reads, writes);
  return blocked_autorange([&] { pattern.run(); }, min_run_time_s).median_us();
}

}  // namespace fuse
