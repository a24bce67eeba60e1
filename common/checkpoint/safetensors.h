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

/// What a file in the safetensors format holds.
struct TensorFile {
  Metadata metadata;
  /// They lie in `memory`, whose bytes need not be aligned.
  TensorMap tensors;
  std::shared_ptr<std::string> memory;
};

/// Writes tensors and metadata in the safetensors format, which other languages
/// read too; a checksum of the whole file is added to the metadata. The file
/// appears whole or not at all: an old one stays until then. Tensors may
/// have any dtype and shape. Throws Error when it cannot be written,
/// UsageError for a place where no file can be, and Error for names that are
/// no UTF-8.
void write_safetensors(const std::string& path, const Metadata& metadata,
                       const TensorMap& tensors);

/// Reads such a file and checks all of it. Throws Error for one that cannot be
/// read, is damaged, or was not written by write_safetensors.
TensorFile read_safetensors(const std::string& path);

}  // namespace fuse
