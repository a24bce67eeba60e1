#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "fusebook/checkpoint/safetensors.h"

// The header of a file is JSON:
//   {"__metadata__": {NAME: TEXT, ...},
//    NAME: {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ...}
namespace fuse {

/// The name of the checksum among the metadata.
inline constexpr const char* kChecksum = "checksum";
/// What stands for it while it is computed.
inline const std::string kNoChecksum(16, '0');

/// What a header says of one tensor.
struct SafetensorsEntry {
  DType dtype{};
  Shape shape;
  std::int64_t begin = 0;  ///< where its bytes begin in the data
  std::int64_t end = 0;    ///< where they end
};

/// What a header says.
struct SafetensorsHeader {
  Metadata metadata;
  std::map<std::string, SafetensorsEntry> entries;
};

/// The name and the tensor of each, in the order of the file.
using FileOrder = std::vector<TensorMap::const_pointer>;

/// The header of a file with these tensors, one after the other, with zeros for a
/// checksum; a multiple of eight bytes. Throws Error for a name that is not UTF-8.
std::string safetensors_header(Metadata metadata, const FileOrder& order);

/// What a header says. Throws Error, with the byte or the tensor's name, for
/// whatever is not as the format wants it.
SafetensorsHeader parse_safetensors_header(std::string_view text);

/// Where the digits of the checksum stand in a text that begins with a header.
/// Throws Error unless Fusebook has written it.
std::size_t place_of_checksum(std::string_view text, const std::string& digits);

}  // namespace fuse
