#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "fusebook/checkpoint/safetensors.h"

// A file consists of the length of its header in eight bytes, little-endian,
// the header, and the numbers of all tensors, one after another.
namespace fuse {

/// What the header says of a tensor.
struct TensorKind {
  DType dtype{};
  Shape shape;
};
/// Kinds by the names of their tensors.
using KindMap = std::map<std::string, TensorKind>;

/// The kinds of tensors.
KindMap kinds_of(const TensorMap& tensors);

/// Where a file of write_safetensors has everything. It follows from names, dtypes
/// and shapes alone, so that parts of one file can be written by several processes.
class SafetensorsLayout {
 public:
  /// Bytes of the file that belong together.
  struct Entry {
    std::string tensor;      ///< the name of the tensor they are from
    bool is_scales = false;  ///< the scales of its blocks of 8 bits
    std::size_t begin = 0;   ///< counting from the beginning of the file
    std::size_t bytes = 0;
  };

  /// Throws Error, with the path of the file where the message needs it, for
  /// names that are not UTF-8 or not unique.
  SafetensorsLayout(const std::string& path, const Metadata& metadata,
                    const KindMap& kinds);

  /// In the order of the file, without gaps.
  const std::vector<Entry>& entries() const { return entries_; }
  /// The hash of all before them. With it as the seed, the first entry is hashed;
  /// with the hash of each entry, the next.
  std::uint64_t first_hash() const;
  /// What comes before the entries, given the hash of the last of them.
  std::string head(std::uint64_t last_hash) const;

 private:
  std::string head_;  // with zeros as the checksum
  std::vector<Entry> entries_;
};

/// The bytes of an entry, or of a part of one from the same tensor cut into parts:
/// in row-major order, in host memory.
class EntryBytes {
 public:
  EntryBytes(const Tensor& tensor, bool is_scales);

  std::string_view bytes() const { return bytes_; }

 private:
  Tensor memory_;
  std::string_view bytes_;
};

/// The bytes of the length in front of a header.
inline constexpr std::size_t kLengthSize = 8;
/// The name under which a file has the scales of a tensor of this type.
std::string name_of_scales(const std::string& tensor, DType dtype);
/// The types with these codes, in blocks of any size.
std::vector<DType> types_with(DType codes);

}  // namespace fuse
