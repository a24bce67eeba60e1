#pragma once

#include <map>
#include <memory>
#include <string>

#include "fusebook/tensor/tensor.h"

namespace fuse {

/// Tensors by name.
using TensorMap = std::map<std::string, Tensor>;
/// Texts by name, in the header of a file.
using Metadata = std::map<std::string, std::string>;

/// The contents of a file in the safetensors format.
struct TensorFile {
  Metadata metadata;
  /// Views of `memory`, not necessarily aligned.
  TensorMap tensors;
  std::shared_ptr<std::string> memory;
};

/// Writes tensors and metadata in the safetensors format, which other languages
/// read too; a checksum of the whole file is added to the metadata. The file
/// appears complete or not at all: an old one stays until then. Tensors may
/// have any dtype and shape. Of block8 and ublock8 the codes are written as I8
/// and U8 and, as "NAME.scales", a float32 for each block, or as
/// "NAME.scales_SIZE" in blocks of another size. Throws Error if it cannot be
/// written, UsageError if the path cannot be a file, and Error for names that are
/// not UTF-8, or that the scales of another tensor could have.
void write_safetensors(const std::string& path, const Metadata& metadata,
                       const TensorMap& tensors);

/// Reads and fully checks such a file. Throws Error if it cannot be read, is
/// damaged, or was not written by write_safetensors.
TensorFile read_safetensors(const std::string& path);

}  // namespace fuse
