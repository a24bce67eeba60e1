#include "fusebook/checkpoint/safetensors.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <new>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "fusebook/checkpoint/safetensors_header.h"
#include "fusebook/json/json.h"
#include "fusebook/ops/element.h"
#include "fusebook/support/content_hash.h"
#include "fusebook/support/error.h"
#include "fusebook/support/file_io.h"
#include "fusebook/support/output_file.h"

namespace fuse {
namespace {

constexpr std::size_t kLargestHeader = 100'000'000;  // the format's limit

// The checksum of the header without its checksum, and of all that follows.
std::string checksum(std::string_view header,
                     std::span<const std::string_view> pieces) {
  std::uint64_t hash = content_hash(header);
  for (const std::string_view piece : pieces) hash = content_hash(piece, hash);
  return hex_digits(hash);
}

std::uint64_t length_of(std::string_view bytes) {
  std::uint64_t length = 0;
  for (std::size_t i = kLengthSize; i-- > 0;) {
    length = length << 8 | static_cast<unsigned char>(bytes[i]);
  }
  return length;
}

// The size of a tensor in bytes; nullopt if it exceeds 63 bits.
std::optional<std::int64_t> size_in_bytes(const SafetensorsEntry& entry) {
  if (std::count(entry.shape.begin(), entry.shape.end(), 0) > 0) return 0;
  auto size = std::int64_t(size_of(entry.dtype));
  for (const std::int64_t extent : entry.shape) {
    if (__builtin_mul_overflow(size, extent, &size)) return {};
  }
  return size;
}

// The byte ranges of the tensors in the data, in order.
std::vector<std::pair<std::int64_t, std::int64_t>> ranges_of(
    const SafetensorsHeader& header) {
  std::vector<std::pair<std::int64_t, std::int64_t>> ranges;
  for (const auto& [name, entry] : header.entries) {
    ranges.emplace_back(entry.begin, entry.end);
  }
  std::sort(ranges.begin(), ranges.end());
  return ranges;
}

// Every byte after the header must belong to exactly one tensor.
void check_layout(const SafetensorsHeader& header, std::size_t size) {
  for (const auto& [name, entry] : header.entries) {
    if (entry.end - entry.begin != size_in_bytes(entry)) {
      throw Error("damaged: tensor " + json_string(name) +
                  " has a size that does not match its shape");
    }
  }
  std::int64_t end = 0;
  for (const auto& range : ranges_of(header)) {
    if (range.first != end) {
      throw Error("damaged: the tensors overlap or leave a gap");
    }
    end = range.second;
  }
  if (std::uint64_t(end) == size) return;
  throw Error(fmt::format(
      "truncated or damaged: the tensors take {} bytes, but the file holds {}",
      end, size));
}

std::size_t header_length(std::string_view bytes, std::size_t size) {
  const std::uint64_t length = length_of(bytes);
  if (length <= kLargestHeader && length <= size - kLengthSize) {
    return std::size_t(length);
  }
  throw Error(
      fmt::format("truncated, or not a safetensors file: its header would have "
                  "a length of {} bytes",
                  length));
}

SafetensorsHeader read_header(int file, std::size_t size) {
  std::string bytes;
  if (size < kLengthSize) {
    throw Error(fmt::format(
        "truncated, or not a safetensors file: it has only {} bytes", size));
  }
  if (!read_exactly(file, kLengthSize, &bytes)) throw Error(errno_text());
  const std::size_t length = header_length(bytes, size);
  if (!read_exactly(file, kLengthSize + length, &bytes)) {
    throw Error(errno_text());
  }
  SafetensorsHeader header;
  try {
    header =
        parse_safetensors_header(std::string_view(bytes).substr(kLengthSize));
  } catch (const Error& error) {
    throw Error("damaged, or not a file for Fusebook: in its header " +
                std::string(error.what()));
  }
  check_layout(header, size - kLengthSize - length);
  return header;
}

void check_checksum(const SafetensorsHeader& header, const std::string& file) {
  const auto written = header.metadata.find(kChecksum);
  if (written == header.metadata.end()) {
    throw Error(
        "damaged, or a safetensors file that Fusebook did not write: it has no "
        "checksum");
  }
  std::string text =
      file.substr(0, kLengthSize + length_of(std::string_view(file)));
  std::vector<std::string_view> pieces;
  for (const auto& [begin, end] : ranges_of(header)) {
    pieces.push_back(std::string_view(file).substr(
        text.size() + std::size_t(begin), std::size_t(end - begin)));
  }
  text.replace(place_of_checksum(text, written->second), written->second.size(),
               kNoChecksum);
  if (checksum(text, pieces) != written->second) {
    throw Error("damaged or changed: its checksum does not match its contents");
  }
}

// A tensor in blocks, from its codes and scales.
Tensor joined(const Shape& shape, DType dtype, const char* codes_from,
              const char* scale_from) {
  const Tensor tensor = empty(shape, dtype, cpu_device);
  auto* to = static_cast<char*>(tensor.raw_data());
  const std::int64_t numel = tensor.numel();
  const std::int64_t size = block_size_of(dtype);
  for (std::int64_t first = 0; first < numel; first += size) {
    std::memcpy(to, scale_from, sizeof(float));
    std::memcpy(to + sizeof(float), codes_from + first,
                std::size_t(std::min(size, numel - first)));
    scale_from += sizeof(float);
    to += bytes_in_blocks(size, size);
  }
  return tensor;
}

// The type of codes whose scales are there.
DType type_by_scales(const std::string& name, DType codes,
                     const TensorMap& tensors) {
  for (const DType type : types_with(codes)) {
    if (tensors.contains(name_of_scales(name, type))) return type;
  }
  return codes;
}

// With the scales that are among the others, and are no longer.
Tensor take_joined(const std::string& name, const SafetensorsEntry& entry,
                   const char* codes_from, TensorMap& others) {
  const DType dtype = type_by_scales(name, entry.dtype, others);
  const std::int64_t size = block_size_of(dtype);
  const auto scales = others.extract(name_of_scales(name, dtype));
  const Shape wanted = {blocks_in(entry.end - entry.begin, size)};
  if (scales.empty() || scales.mapped().dtype() != DType::float32 ||
      scales.mapped().shape() != wanted) {
    throw Error("damaged, or not a file for Fusebook: tensor " +
                json_string(name) + " has codes of 8 bits, but " +
                json_string(name_of_scales(name, dtype)) +
                " does not have a scale for every " + std::to_string(size) +
                " of them");
  }
  return joined(entry.shape, dtype, codes_from,
                static_cast<const char*>(scales.mapped().raw_data()));
}

TensorMap tensors_in(const SafetensorsHeader& header, std::string& file) {
  char* const data =
      file.data() + kLengthSize + length_of(std::string_view(file));
  TensorMap tensors;
  for (const auto& [name, entry] : header.entries) {
    if (in_blocks(entry.dtype)) continue;
    tensors[name] = from_blob(data + entry.begin, entry.shape, entry.dtype);
  }
  for (const auto& [name, entry] : header.entries) {
    if (!in_blocks(entry.dtype)) continue;
    tensors[name] = take_joined(name, entry, data + entry.begin, tensors);
  }
  return tensors;
}

UniqueFd open_file(const std::string& path, std::size_t* size) {
  // Without O_NONBLOCK, opening a pipe would wait for its writer.
  UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat found{};
  if (!file.valid() || fstat(file.get(), &found) != 0) {
    throw Error(errno_text());
  }
  if (!S_ISREG(found.st_mode)) throw Error("it is not a regular file");
  *size = std::size_t(found.st_size);
  return file;
}

TensorFile read_checked(const std::string& path) {
  std::size_t size = 0;
  const UniqueFd file = open_file(path, &size);
  const SafetensorsHeader header = read_header(file.get(), size);
  TensorFile result{header.metadata, {}, std::make_shared<std::string>()};
  if (!read_exactly(file.get(), size, result.memory.get())) {
    throw Error(errno == 0 ? "it shrank while being read" : errno_text());
  }
  check_checksum(header, *result.memory);
  result.metadata.erase(kChecksum);
  result.tensors = tensors_in(header, *result.memory);
  return result;
}

}  // namespace

void write_safetensors(const std::string& path, const Metadata& metadata,
                       const TensorMap& tensors) {
  for (const auto& [name, tensor] : tensors) {
    if (tensor.defined()) continue;
    throw Error("cannot write '" + path + "': the tensor " + json_string(name) +
                " is undefined");
  }
  OutputFile file("safetensors", path);
  const SafetensorsLayout layout(path, metadata, kinds_of(tensors));
  std::vector<EntryBytes> entries;
  std::vector<std::string_view> pieces = {{}};
  std::uint64_t hash = layout.first_hash();
  for (const auto& entry : layout.entries()) {
    entries.emplace_back(tensors.at(entry.tensor), entry.is_scales);
    pieces.push_back(entries.back().bytes());
    hash = content_hash(pieces.back(), hash);
  }
  const std::string head = layout.head(hash);
  pieces[0] = head;
  file.write(pieces);
  file.commit();
}

TensorFile read_safetensors(const std::string& path) {
  try {
    return read_checked(path);
  } catch (const Error& error) {
    throw Error("cannot read '" + path + "': " + error.what());
  } catch (const std::bad_alloc&) {
    throw Error("cannot read '" + path + "': not enough memory");
  }
}

}  // namespace fuse
