#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "fusebook/checkpoint/safetensors_layout.h"

// The header of a file is JSON:
//   {"__metadata__": {NAME: TEXT, ...},
//    NAME: {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ...}
namespace fuse {

/// The name of the checksum in the metadata.
inline constexpr const char* kChecksum = "checksum";
/// Its placeholder during the computation.
inline const std::string kNoChecksum(16, '0');

/// The header's entry for one tensor.
struct SafetensorsEntry {
  DType dtype{};
  Shape shape;
  std::int64_t begin = 0;  ///< offset in the data where its bytes begin
  std::int64_t end = 0;    ///< and where they end
};

/// The contents of a header.
struct SafetensorsHeader {
  Metadata metadata;
  std::map<std::string, SafetensorsEntry> entries;
};

/// The name and kind of each entry, in file order.
using FileOrder = std::vector<KindMap::const_pointer>;

/// The bytes of a tensor's own entry: of blocks, those of its codes.
std::size_t bytes_in_file(const TensorKind& kind);

/// The header of a file with these tensors, one after another, with zeros as
/// the checksum; its size is a multiple of eight bytes. Throws Error for a name
/// that is not UTF-8.
std::string safetensors_header(Metadata metadata, const FileOrder& order);

/// Parses a header. Throws Error, with the byte or the tensor's name, for
/// anything that violates the format.
SafetensorsHeader parse_safetensors_header(std::string_view text);

/// The position of the checksum's digits in a text that starts with a header.
/// Throws Error unless Fusebook wrote it.
std::size_t place_of_checksum(std::string_view text, const std::string& digits);

}  // namespace fuse
