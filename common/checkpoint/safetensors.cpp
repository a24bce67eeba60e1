#include "fusebook/checkpoint/safetensors.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <map>
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

// A file consists of the length of its header in eight bytes, little-endian,
// the header, and the numbers of all tensors, one after another.
namespace fuse {
namespace {

constexpr std::size_t kLengthSize = 8;
constexpr std::size_t kLargestHeader = 100'000'000;  // the format's limit

// ---- writing ----------------------------------------------------------------

// The name and tensor of each entry in file order: wide elements first, so that
// every tensor is aligned if the file is.
FileOrder file_order(const TensorMap& tensors) {
  FileOrder order;
  for (const auto& named : tensors) order.push_back(&named);
  std::stable_sort(
      order.begin(), order.end(), [](const auto* a, const auto* b) {
        return size_of(a->second.dtype()) > size_of(b->second.dtype());
      });
  return order;
}

// The bytes of a contiguous tensor of numbers.
std::string_view bytes_of(const Tensor& tensor) {
  // Taking the address flushes pending recorded writes first.
  const void* const data = with_type(
      tensor.dtype(),
      [&](auto type) -> const void* { return tensor.data<decltype(type)>(); });
  return {static_cast<const char*>(data), tensor.nbytes()};
}

// Codes and scales of blocks are tensors of their own in a file.
constexpr const char* kScales = ".scales";

std::int64_t blocks_in(std::int64_t numel) {
  return (numel + block_size - 1) / block_size;
}

// Calls visit(scale, codes, first, n) for each block at an address: where its
// scale and codes are, which element is its first, and how many it has.
template <class Visit>
void for_each_block(char* blocks, std::int64_t numel, Visit visit) {
  for (std::int64_t first = 0; first < numel; first += block_size) {
    char* const scale = blocks + first / block_size * block_bytes;
    visit(scale, scale + sizeof(float), first,
          std::size_t(std::min<std::int64_t>(block_size, numel - first)));
  }
}

// The codes of a tensor in blocks, without its scales, and those.
struct Parts {
  std::string codes;
  Tensor scales;
};

Parts parts_of(const Tensor& tensor) {
  const std::int64_t numel = tensor.numel();
  Parts parts = {std::string(std::size_t(numel), '\0'),
                 empty({blocks_in(numel)}, DType::float32, cpu_device)};
  auto* scale_to = static_cast<char*>(parts.scales.raw_data());
  for_each_block(static_cast<char*>(tensor.address(false)), numel,
                 [&](const char* scale, const char* codes, std::int64_t first,
                     std::size_t n) {
                   std::memcpy(scale_to, scale, sizeof(float));
                   std::memcpy(parts.codes.data() + first, codes, n);
                   scale_to += sizeof(float);
                 });
  return parts;
}

Tensor joined(const Shape& shape, DType dtype, const char* codes_from,
              const char* scale_from) {
  const Tensor tensor = empty(shape, dtype, cpu_device);
  for_each_block(
      static_cast<char*>(tensor.raw_data()), tensor.numel(),
      [&](char* scale, char* codes, std::int64_t first, std::size_t n) {
        std::memcpy(scale, scale_from, sizeof(float));
        std::memcpy(codes, codes_from + first, n);
        scale_from += sizeof(float);
      });
  return tensor;
}

// Adds the scales of all blocks to what is written, and keeps their codes.
std::map<std::string, std::string> split_blocks(const std::string& path,
                                                TensorMap& tensors) {
  std::map<std::string, std::string> codes;
  TensorMap scales;
  for (const auto& [name, tensor] : tensors) {
    if (!in_blocks(tensor.dtype())) continue;
    Parts parts = parts_of(tensor);
    codes[name] = std::move(parts.codes);
    scales[name + kScales] = parts.scales;
  }
  for (const auto& [name, tensor] : scales) {
    if (tensors.emplace(name, tensor).second) continue;
    throw Error("cannot write '" + path +
                "': the scales of a tensor in 8 bits "
                "would be called " +
                json_string(name) + ", as another tensor is");
  }
  return codes;
}

std::string length_bytes(std::uint64_t length) {
  std::string bytes;
  for (std::size_t i = 0; i < kLengthSize; ++i, length >>= 8) {
    bytes += static_cast<char>(length & 0xFFU);
  }
  return bytes;
}

// The checksum of the header without its checksum, and of all that follows.
std::string checksum(std::string_view header,
                     std::span<const std::string_view> pieces) {
  std::uint64_t hash = content_hash(header);
  for (const std::string_view piece : pieces) hash = content_hash(piece, hash);
  return hex_digits(hash);
}

// ---- reading ----------------------------------------------------------------

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
    const auto scales = tensors.extract(name + kScales);
    const Shape wanted = {blocks_in(entry.end - entry.begin)};
    if (scales.empty() || scales.mapped().dtype() != DType::float32 ||
        scales.mapped().shape() != wanted) {
      throw Error("damaged, or not a file for Fusebook: tensor " +
                  json_string(name) + " has codes of 8 bits, but " +
                  json_string(name + kScales) + " does not have a scale for " +
                  "every 256 of them");
    }
    tensors[name] =
        joined(entry.shape, entry.dtype, data + entry.begin,
               static_cast<const char*>(scales.mapped().raw_data()));
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
  TensorMap contiguous = tensors;
  for (auto& [name, tensor] : contiguous) tensor = tensor.cpu().contiguous();
  const auto codes = split_blocks(path, contiguous);
  const FileOrder order = file_order(contiguous);
  std::string text = safetensors_header(metadata, order);
  const std::size_t checksum_at =
      kLengthSize + place_of_checksum(text, kNoChecksum);
  text.insert(0, length_bytes(text.size()));
  std::vector<std::string_view> pieces = {{}};
  for (const auto* named : order) {
    const bool coded = in_blocks(named->second.dtype());
    pieces.push_back(coded ? std::string_view(codes.at(named->first))
                           : bytes_of(named->second));
  }
  const std::string digits = checksum(text, std::span(pieces).subspan(1));
  text.replace(checksum_at, digits.size(), digits);
  pieces[0] = text;
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
