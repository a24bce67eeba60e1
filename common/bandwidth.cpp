#include "bandwidth.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <utility>

#include "benchmark.h"
#include "error.h"
#include "parallel_for.h"

namespace fuse {
namespace {

constexpr int most_arrays = 8;
/// Threads meet only between groups of this many elements (one cache line of
/// every array at a time), and no thread gets less than a few kilobytes.
constexpr std::int64_t line_length = 16;
constexpr std::int64_t least_elements = 2048;

/// Different for arrays of one tensor and for neighbours, up to 2 KiB.
constexpr std::size_t most_lines_apart = 32;

using Addresses = std::array<float*, most_arrays>;
using Pass = void (*)(const Addresses&, std::int64_t begin, std::int64_t end);

using Vector32 [[gnu::vector_size(32)]] = float;
using Vector64 [[gnu::vector_size(64)]] = float;

/// Adds up what the `Reads` arrays hold and stores it into `Writes` of them.
/// They hold zeros, so they stay what they are: no overflow, no denormals.
template <class Vector, int Reads, int Writes>
[[gnu::always_inline]] inline void sweep(const Addresses& arrays,
                                         std::int64_t begin, std::int64_t end) {
  constexpr auto vector_length = std::int64_t(sizeof(Vector) / sizeof(float));
  std::int64_t i = begin;
  for (; i + vector_length <= end; i += vector_length) {
    Vector sum{};
    for (int k = 0; k < Reads; ++k) {
      Vector value;
      std::memcpy(&value, arrays[std::size_t(k)] + i, sizeof value);
      sum += value;
    }
    for (int k = 0; k < Writes; ++k) {
      std::memcpy(arrays[std::size_t(k)] + i, &sum, sizeof sum);
    }
  }
  for (; i < end; ++i) {
    float sum = 0;
    for (int k = 0; k < Reads; ++k) sum += arrays[std::size_t(k)][i];
    for (int k = 0; k < Writes; ++k) arrays[std::size_t(k)][i] = sum;
  }
}

template <int Reads, int Writes>
void sweep_plain(const Addresses& arrays, std::int64_t begin,
                 std::int64_t end) {
  sweep<Vector32, Reads, Writes>(arrays, begin, end);
}

#if defined(__x86_64__) && defined(__GNUC__)
template <int Reads, int Writes>
[[gnu::target("avx2")]] void sweep_avx2(const Addresses& arrays,
                                        std::int64_t begin, std::int64_t end) {
  sweep<Vector32, Reads, Writes>(arrays, begin, end);
}

template <int Reads, int Writes>
[[gnu::target("avx512f")]] void sweep_avx512(const Addresses& arrays,
                                             std::int64_t begin,
                                             std::int64_t end) {
  sweep<Vector64, Reads, Writes>(arrays, begin, end);
}

template <int Reads, int Writes>
Pass best_sweep(bool wide) {
  if (wide && __builtin_cpu_supports("avx512f")) {
    return sweep_avx512<Reads, Writes>;
  }
  return __builtin_cpu_supports("avx2") ? sweep_avx2<Reads, Writes>
                                        : sweep_plain<Reads, Writes>;
}
#else
template <int Reads, int Writes>
Pass best_sweep(bool) {
  return sweep_plain<Reads, Writes>;
}
#endif

template <int Reads, int... Writes>
Pass pass_with_writes(int writes, bool wide,
                      std::integer_sequence<int, Writes...>) {
  Pass pass = nullptr;
  ((writes == Writes + 1 ? void(pass = best_sweep<Reads, Writes + 1>(wide))
                         : void()),
   ...);
  return pass;
}

template <int... Reads>
Pass find_pass(int reads, int writes, bool wide,
               std::integer_sequence<int, Reads...>) {
  Pass pass = nullptr;
  ((reads == Reads + 1
        ? void(pass = pass_with_writes<Reads + 1>(
                   writes, wide, std::make_integer_sequence<int, Reads + 1>()))
        : void()),
   ...);
  return pass;
}

}  // namespace

AccessPattern::AccessPattern(std::vector<std::int64_t> sizes, int reads,
                             int writes, Bases bases)
    : sizes_(std::move(sizes)), reads_(reads), writes_(writes), bases_(bases) {
  if (writes < 1 || writes > reads || reads > most_arrays) {
    throw Error("an access pattern of " + std::to_string(reads) +
                " reads and " + std::to_string(writes) +
                " writes cannot be; 1 <= writes <= reads <= 8 must hold");
  }
  for (const std::int64_t size : sizes_) {
    starts_.push_back(total_);
    total_ += size;
  }
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
}

float* AccessPattern::base(std::size_t read, std::size_t index) const {
  auto* const start = static_cast<float*>(arrays_[read][index].raw_data());
  if (bases_ == Bases::allocated) return start;
  const std::size_t lines = (read * 9 + index * 5) % most_lines_apart;
  return start + lines * std::size_t(line_length);
}

void AccessPattern::run_range(Pass pass, std::int64_t begin,
                              std::int64_t end) const {
  const auto after = std::upper_bound(starts_.begin(), starts_.end(), begin);
  auto i = std::size_t(after - starts_.begin()) - 1;
  for (; i < sizes_.size() && starts_[i] < end; ++i) {
    Addresses addresses{};
    for (std::size_t k = 0; k < arrays_.size(); ++k) addresses[k] = base(k, i);
    pass(addresses, std::max<std::int64_t>(begin - starts_[i], 0),
         std::min(end - starts_[i], sizes_[i]));
  }
}

void AccessPattern::run(Width width) const {
  if (to_.defined()) {
    Tensor(to_).copy_(from_);
    return;
  }
  const Pass pass = find_pass(reads_, writes_, width == Width::bytes64,
                              std::make_integer_sequence<int, most_arrays>());
  const std::int64_t lines = (total_ + line_length - 1) / line_length;
  parallel_for(lines, least_elements / line_length,
               [this, pass](std::int64_t begin, std::int64_t end) {
                 if (begin == end) return;
                 run_range(pass, begin * line_length,
                           std::min(end * line_length, total_));
               });
}

std::int64_t AccessPattern::bytes() const {
  return total_ * std::int64_t(sizeof(float)) * (reads_ + writes_);
}

double bandwidth_limit_us(const std::vector<std::int64_t>& sizes, int reads,
                          int writes, double min_run_time_s) {
  const AccessPattern pattern(sizes, reads, writes);
  return blocked_autorange([&] { pattern.run(); }, min_run_time_s).median_us();
}

}  // namespace fuse
