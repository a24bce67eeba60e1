// Where the lists of a random program lie.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "fusebook/ops/element.h"
#include "fusebook/tensor/tensor.h"
#include "support/reduced.h"
#include "support/strided_testing.h"
#include "support/testing.h"

namespace random_programs {

using namespace fuse;
using testing::Lie;
using testing::Placement;
using testing::Random;

/// Elements of all tensors of a list, as doubles.
using Values = std::vector<std::vector<double>>;

/// Tensors at odd addresses, with bytes between them that must not change. On a
/// device each element is aligned, as it must be there.
class Memory {
 public:
  /// `lies` is a source of its own, so that data are the same however they lie.
  Memory(const std::vector<std::int64_t>& sizes,
         const std::vector<Shape>& shapes, DType dtype, Lie lie, Random& random,
         Random& lies, const Device& device)
      : dtype_(dtype), device_(device), sizes_(sizes) {
    std::size_t end = 0;
    for (const Shape& shape : shapes) {
      end += std::size_t(1 + random.below(16));
      if (!device.is_cpu()) end = whole(end, size_of(dtype));
      offsets_.push_back(end);
      places_.emplace_back(shape, lie, lies);
      end += places_.back().room() * size_of(dtype);
    }
    bytes_.assign(whole(end + 16, sizeof(double)), guard);
    owned_.assign(bytes_.size(), 0);
    for (std::size_t e = 0; e < sizes.size(); ++e) {
      for (std::int64_t i = 0; i < sizes[e]; ++i) {
        set(e, std::size_t(i), random);
      }
    }
    initial_ = bytes_;
    if (!device.is_cpu()) there_ = as_tensor().to(device);
  }

  Tensor tensor(std::size_t e) {
    auto* const begin = there_.defined()
                            ? static_cast<unsigned char*>(there_.raw_data())
                            : bytes_.data();
    return places_[e].tensor(begin + offsets_[e], dtype_, device_);
  }
  void reset() {
    std::copy(initial_.begin(), initial_.end(), bytes_.begin());
    if (there_.defined()) there_.copy_(as_tensor());
  }
  /// Brings what a device has stored.
  void fetch() {
    if (there_.defined()) as_tensor().copy_(there_);
  }
  /// Whether some tensor lies where its elements are not aligned.
  bool is_unaligned() const {
    for (std::size_t e = 0; e < sizes_.size(); ++e) {
      const auto at =
          reinterpret_cast<std::uintptr_t>(bytes_.data() + offsets_[e]);
      if (sizes_[e] > 0 && at % size_of(dtype_) != 0) return true;
    }
    return false;
  }

  Values values() const {
    Values result;
    for (std::size_t e = 0; e < sizes_.size(); ++e) {
      result.emplace_back();
      for (std::int64_t i = 0; i < sizes_[e]; ++i) {
        result[e].push_back(get(e, std::size_t(i)));
      }
    }
    return result;
  }

  bool guards_hold() const {
    for (std::size_t at = 0; at < bytes_.size(); ++at) {
      if (owned_[at] == 0 && bytes_[at] != guard) return false;
    }
    return true;
  }

 private:
  static constexpr unsigned char guard = 0xa5;

  static std::size_t whole(std::size_t bytes, std::size_t of) {
    return (bytes + of - 1) / of * of;
  }
  /// All bytes, of which none changes on its way.
  Tensor as_tensor() {
    return from_blob(bytes_.data(),
                     {std::int64_t(bytes_.size() / sizeof(double))},
                     DType::float64);
  }

  std::size_t place_of(std::size_t e, std::size_t i) const {
    return offsets_[e] + places_[e].at(i) * size_of(dtype_);
  }

  void set(std::size_t e, std::size_t i, Random& random) {
    const std::size_t place = place_of(e, i);
    unsigned char* const to = bytes_.data() + place;
    std::fill_n(owned_.begin() + std::ptrdiff_t(place), size_of(dtype_), 1);
    const double value = reduced::any_value(dtype_, random);
    with_type(dtype_, [&](auto type) {
      store_element(to, 0, static_cast<decltype(type)>(value));
    });
  }
  double get(std::size_t e, std::size_t i) const {
    const unsigned char* const from = bytes_.data() + place_of(e, i);
    return with_type(dtype_, [&](auto type) {
      return double(load_element<decltype(type)>(from, 0));
    });
  }

  DType dtype_;
  Device device_;
  Tensor there_;  // the bytes on another device than the CPU
  std::vector<std::int64_t> sizes_;
  std::vector<std::size_t> offsets_;
  std::vector<Placement> places_;
  std::vector<unsigned char> owned_;  // of each byte: part of an element
  std::vector<unsigned char> bytes_;
  std::vector<unsigned char> initial_;
};

}  // namespace random_programs
