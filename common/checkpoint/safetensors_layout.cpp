#include "fusebook/checkpoint/safetensors_layout.h"

#include <algorithm>
#include <cstring>

#include "fusebook/checkpoint/safetensors_header.h"
#include "fusebook/json/json.h"
#include "fusebook/ops/element.h"
#include "fusebook/support/content_hash.h"
#include "fusebook/support/error.h"

namespace fuse {
namespace {

std::string length_bytes(std::uint64_t length) {
  std::string bytes;
  for (std::size_t i = 0; i < kLengthSize; ++i, length >>= 8) {
    bytes += static_cast<char>(length & 0xFFU);
  }
  return bytes;
}

// Wide elements first, so that every tensor is aligned if the file is.
FileOrder file_order(const KindMap& kinds) {
  FileOrder order;
  for (const auto& named : kinds) order.push_back(&named);
  std::stable_sort(order.begin(), order.end(),
                   [](const auto* a, const auto* b) {
                     return size_of(a->second.dtype) > size_of(b->second.dtype);
                   });
  return order;
}

// The codes of all blocks, or else their scales, in memory of its own.
Tensor part_of_blocks(const Tensor& tensor, bool is_scales) {
  const std::int64_t numel = tensor.numel();
  const std::int64_t size = block_size_of(tensor.dtype());
  const std::int64_t count = blocks_in(numel, size);
  const Tensor part =
      is_scales ? empty({count}, DType::float32, cpu_device)
                : empty({(numel + 3) / 4}, DType::float32, cpu_device);
  const auto* const blocks = static_cast<const char*>(tensor.address(false));
  auto* const to = static_cast<char*>(part.raw_data());
  for (std::int64_t b = 0; b < count; ++b) {
    const char* const block = blocks + b * bytes_in_blocks(size, size);
    if (is_scales) {
      std::memcpy(to + b * std::int64_t(sizeof(float)), block, sizeof(float));
      continue;
    }
    const std::int64_t first = b * size;
    std::memcpy(to + first, block + sizeof(float),
                std::size_t(std::min(size, numel - first)));
  }
  return part;
}

}  // namespace

KindMap kinds_of(const TensorMap& tensors) {
  KindMap kinds;
  for (const auto& [name, tensor] : tensors) {
    kinds[name] = {tensor.dtype(), tensor.shape()};
  }
  return kinds;
}

std::string name_of_scales(const std::string& tensor, DType dtype) {
  const std::int64_t size = block_size_of(dtype);
  return tensor + ".scales" +
         (size == block_size ? "" : "_" + std::to_string(size));
}

std::vector<DType> types_with(DType codes) {
  std::vector<DType> types;
  for (std::int64_t size = 1; size <= largest_block; size *= 2) {
    if (is_block_size(size)) types.push_back(with_block_size(codes, size));
  }
  return types;
}

namespace {

// A file says by the name of the scales how large blocks are, so there is one.
void check_names_of_scales(const std::string& path, const std::string& tensor,
                           const KindMap& kinds) {
  for (const DType type : types_with(kinds.at(tensor).dtype)) {
    const std::string scales = name_of_scales(tensor, type);
    if (!kinds.contains(scales)) continue;
    throw Error("cannot write '" + path + "': a tensor is called " +
                json_string(scales) + ", as scales of " + json_string(tensor) +
                " in 8 bits are; give one of them another name");
  }
}

}  // namespace

SafetensorsLayout::SafetensorsLayout(const std::string& path,
                                     const Metadata& metadata,
                                     const KindMap& kinds) {
  KindMap all = kinds;
  std::map<std::string, std::string> of_scales;
  for (const auto& [name, kind] : kinds) {
    if (!in_blocks(kind.dtype)) continue;
    std::int64_t numel = 1;
    for (const std::int64_t size : kind.shape) numel *= size;
    check_names_of_scales(path, name, kinds);
    const std::string scales = name_of_scales(name, kind.dtype);
    of_scales[scales] = name;
    all[scales] = {DType::float32,
                   {blocks_in(numel, block_size_of(kind.dtype))}};
  }
  const FileOrder order = file_order(all);
  head_ = safetensors_header(metadata, order);
  head_.insert(0, length_bytes(head_.size()));
  std::size_t begin = head_.size();
  for (const auto* named : order) {
    const auto scales = of_scales.find(named->first);
    const bool is_scales = scales != of_scales.end();
    const std::size_t bytes = bytes_in_file(named->second);
    entries_.push_back(
        {is_scales ? scales->second : named->first, is_scales, begin, bytes});
    begin += bytes;
  }
}

std::uint64_t SafetensorsLayout::first_hash() const {
  return content_hash(head_);
}

std::string SafetensorsLayout::head(std::uint64_t last_hash) const {
  std::string text = head_;
  const std::string digits = hex_digits(last_hash);
  const std::size_t at =
      kLengthSize +
      place_of_checksum(std::string_view(text).substr(kLengthSize),
                        kNoChecksum);
  return text.replace(at, digits.size(), digits);
}

EntryBytes::EntryBytes(const Tensor& tensor, bool is_scales)
    : memory_(tensor.cpu().contiguous()) {
  std::size_t size = memory_.nbytes();
  if (in_blocks(tensor.dtype())) {
    memory_ = part_of_blocks(memory_, is_scales);
    size = is_scales ? memory_.nbytes() : std::size_t(tensor.numel());
  }
  // Taking the address flushes pending recorded writes first.
  bytes_ = {static_cast<const char*>(memory_.address(false)), size};
}

}  // namespace fuse
