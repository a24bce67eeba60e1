// What the tests of the kernels share: random numbers, the values that break
// arithmetic, comparison by bits, and lists over plain memory.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <deque>
#include <initializer_list>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "fusebook/ir/program.h"
#include "fusebook/ops/dtype.h"
#include "fusebook/runtime/parallel.h"

namespace testing {

/// SplitMix64: small, and the same on every machine.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t bits() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15ULL;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  }
  /// From 0 up to, not including, `n`.
  int below(int n) { return int(bits() % std::uint64_t(n)); }
  bool chance(double p) { return uniform(0, 1) < p; }
  double uniform(double low, double high) {
    return low + (high - low) * (double(bits() >> 11) * 0x1p-53);
  }
  template <class T>
  const T& pick(const std::vector<T>& items) {
    return items[std::size_t(below(int(items.size())))];
  }

 private:
  std::uint64_t state_;
};

/// Both zeros, denormals, the ends of the range, infinities, NaN, and numbers
/// at which operations change their branch or their rounding.
template <class T>
const std::vector<T>& special_values() {
  using Limits = std::numeric_limits<T>;
  static const std::vector<T> values = {T(0),
                                        -T(0),
                                        T(1),
                                        T(-1),
                                        T(0.5),
                                        T(-0.5),
                                        T(1.5),
                                        T(2.5),
                                        T(-2.5),
                                        T(2),
                                        T(3),
                                        T(-7),
                                        Limits::denorm_min(),
                                        -Limits::denorm_min(),
                                        Limits::min() / 2,
                                        Limits::min(),
                                        -Limits::min(),
                                        Limits::max(),
                                        Limits::lowest(),
                                        Limits::epsilon(),
                                        T(1) - Limits::epsilon() / 2,
                                        Limits::infinity(),
                                        -Limits::infinity(),
                                        Limits::quiet_NaN()};
  return values;
}

/// A number of any size, sometimes a special one.
template <class T>
T any_value(Random& random) {
  const int kind = random.below(10);
  if (kind == 0) return random.pick(special_values<T>());
  if (kind == 1) return T(random.below(9) - 4);
  const double size = kind < 4 ? std::exp2(random.uniform(-40, 40)) : 4.0;
  return T(random.uniform(-size, size));
}

/// Equal bits; any NaN equals any NaN.
template <class T>
bool same_value(T a, T b) {
  using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return std::bit_cast<Bits>(a) == std::bit_cast<Bits>(b);
}

/// What an expected error says; "no error" when there is none.
template <class Error, class Function>
std::string message_of(Function function) {
  try {
    function();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// Calls `function` where the parts of a launch run one after the other: from
/// inside another parallel region.
template <class Function>
void in_order(Function function) {
  fuse::parallel_run(2, [&](int part) {
    if (part == 0) function();
  });
}

/// An identity that no other list has.
inline std::uint64_t next_list_id() {
  static std::uint64_t last = 0;
  return ++last;
}

/// A list of tensors in plain memory, for programs that are made by hand.
template <class T>
class MemoryList {
 public:
  MemoryList(const char* label, std::vector<std::vector<T>> values)
      : memory_(std::move(values)), label_(label), id_(next_list_id()) {
    for (auto& tensor : memory_) {
      addresses_.push_back(tensor.data());
      numels_.push_back(std::int64_t(tensor.size()));
    }
  }
  /// Tensors of given sizes, all zero.
  static MemoryList zeros(const char* label,
                          const std::vector<std::int64_t>& sizes) {
    std::vector<std::vector<T>> values;
    for (const std::int64_t n : sizes) values.emplace_back(std::size_t(n));
    return MemoryList(label, std::move(values));
  }
  /// Tensors that lie where others do.
  MemoryList(const char* label, std::vector<void*> addresses,
             std::vector<std::int64_t> numels)
      : addresses_(std::move(addresses)),
        numels_(std::move(numels)),
        label_(label),
        id_(next_list_id()) {}
  MemoryList(const MemoryList&) = delete;
  MemoryList& operator=(const MemoryList&) = delete;
  MemoryList(MemoryList&&) = default;
  MemoryList& operator=(MemoryList&&) = default;

  fuse::ListView view() const {
    return {id_, addresses_.data(), numels_.data(), addresses_.size(), label_};
  }
  fuse::SlotInfo info(fuse::Rate rate = fuse::Rate::element) const {
    return {
        std::is_same_v<T, float> ? fuse::DType::float32 : fuse::DType::float64,
        rate};
  }
  std::vector<T>& operator[](std::size_t i) { return memory_[i]; }
  const std::vector<std::vector<T>>& values() const { return memory_; }

 private:
  std::vector<std::vector<T>> memory_;
  std::vector<void*> addresses_;
  std::vector<std::int64_t> numels_;
  const char* label_;
  std::uint64_t id_;
};

}  // namespace testing
