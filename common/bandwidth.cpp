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
constexpr std::int64_t vector_length = 8;
/// Threads meet only between groups of this many elements (one cache line of
/// every array at a time), and no thread gets less than a few kilobytes.
constexpr std::int64_t line_length = 16;
constexpr std::int64_t least_elements = 2048;

/// 256 bits whatever the machine; the compiler splits it where it must.
using Vector [[gnu::vector_size(32)]] = float;
using Addresses = std::array<float*, most_arrays>;
using Pass = void (*)(const Addresses&, std::int64_t begin, std::int64_t end);

/// Adds up what the `Reads` arrays hold and stores it into `Writes` of them.
/// They hold zeros, so they stay what they are: no overflow, no denormals.
template <int Reads, int Writes>
[[gnu::always_inline]] inline void sweep(const Addresses& arrays,
                                         std::int64_t begin, std::int64_t end) {
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
  sweep<Reads, Writes>(arrays, begin, end);
}

#if defined(__x86_64__) && defined(__GNUC__)
template <int Reads, int Writes>
[[gnu::target("avx2")]] void sweep_avx2(const Addresses& arrays,
                                        std::int64_t begin, std::int64_t end) {
  sweep<Reads, Writes>(arrays, begin, end);
}

template <int Reads, int Writes>
Pass best_sweep() {
  return __builtin_cpu_supports("avx2") ? sweep_avx2<Reads, Writes>
                                        : sweep_plain<Reads, Writes>;
}
#else
template <int Reads, int Writes>
Pass best_sweep() {
  return sweep_plain<Reads, Writes>;
}
#endif

template <int Reads, int... Writes>
Pass pass_with_writes(int writes, std::integer_sequence<int, Writes...>) {
  Pass pass = nullptr;
  ((writes == Writes + 1 ? void(pass = best_sweep<Reads, Writes + 1>())
                         : void()),
   ...);
  return pass;
}

template <int... Reads>
Pass find_pass(int reads, int writes, std::integer_sequence<int, Reads...>) {
  Pass pass = nullptr;
  ((reads == Reads + 1
        ? void(pass = pass_with_writes<Reads + 1>(
                   writes, std::make_integer_sequence<int, Reads + 1>()))
        : void()),
   ...);
  return pass;
}

}  // namespace

AccessPattern::AccessPattern(std::vector<std::int64_t> sizes, int reads,
                             int writes)
    : sizes_(std::move(sizes)), reads_(reads), writes_(writes) {
  if (writes < 1 || writes > reads || reads > most_arrays) {
    throw Error("an access pattern of " + std::to_string(reads) +
                " reads and " + std::to_string(writes) +
                " writes cannot be; 1 <= writes <= reads <= 8 must hold");
  }
  for (const std::int64_t size : sizes_) {
    starts_.push_back(total_);
    total_ += size;
  }
  arrays_.resize(std::size_t(reads));
  for (auto& array : arrays_) {
    for (const std::int64_t size : sizes_) array.push_back(zeros({size}));
  }
}

void AccessPattern::run_range(std::int64_t begin, std::int64_t end) const {
  const Pass pass =
      find_pass(reads_, writes_, std::make_integer_sequence<int, 8>());
  const auto after = std::upper_bound(starts_.begin(), starts_.end(), begin);
  auto i = std::size_t(after - starts_.begin()) - 1;
  for (; i < sizes_.size() && starts_[i] < end; ++i) {
    Addresses addresses{};
    for (std::size_t k = 0; k < arrays_.size(); ++k) {
      addresses[k] = static_cast<float*>(arrays_[k][i].raw_data());
    }
    pass(addresses, std::max<std::int64_t>(begin - starts_[i], 0),
         std::min(end - starts_[i], sizes_[i]));
  }
}

void AccessPattern::run() const {
  const std::int64_t lines = (total_ + line_length - 1) / line_length;
  parallel_for(lines, least_elements / line_length,
               [this](std::int64_t begin, std::int64_t end) {
                 if (begin == end) return;
                 run_range(begin * line_length,
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
