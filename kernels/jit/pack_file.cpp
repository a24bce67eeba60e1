#include "fusebook/jit/pack_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "fusebook/jit/trusted_file.h"
#include "fusebook/support/content_hash.h"
#include "fusebook/support/file_io.h"

namespace fuse {
namespace {

// A file is this line, the entries, and their length with a checksum of all
// before it.
constexpr std::string_view kind = "Fusebook kernels, format ";
constexpr std::string_view first_line = "Fusebook kernels, format 1\n";
constexpr std::size_t number_size = sizeof(std::uint64_t);
constexpr std::size_t trailer_size = 2 * number_size;
constexpr std::uint64_t pack_size_limit = std::uint64_t(1) << 30;

constexpr std::string_view key_start =
    "Fusebook packed kernel, format 1\nfor: ";

void append(std::string* text, std::uint64_t number) {
  text->append(reinterpret_cast<const char*>(&number), number_size);
}

std::uint64_t number_at(const std::string& bytes, std::size_t at) {
  std::uint64_t number = 0;
  std::memcpy(&number, bytes.data() + at, number_size);
  return number;
}

// The problem with the bytes as a whole, or an empty string.
std::string whole_fault(const std::string& bytes) {
  const std::string_view all(bytes);
  if (!all.starts_with(kind)) return "holds no packed kernels";
  if (!all.starts_with(first_line)) {
    const std::string_view line = all.substr(0, all.find('\n'));
    return "has format " + std::string(line.substr(kind.size())) +
           ", and this version reads format 1; pack the kernels again";
  }
  if (bytes.size() < first_line.size() + trailer_size) return "is truncated";
  const std::size_t checksum = bytes.size() - number_size;
  if (number_at(bytes, checksum - number_size) !=
      checksum - number_size - first_line.size()) {
    return "is truncated";
  }
  if (number_at(bytes, checksum) != content_hash(all.substr(0, checksum))) {
    return "is damaged: its checksum does not match";
  }
  return {};
}

std::string_view target_of(std::string_view key) {
  if (!key.starts_with(key_start)) return {};
  key.remove_prefix(key_start.size());
  return key.substr(0, key.find('\n'));
}

std::string read_trusted(const std::string& path, std::string* bytes) {
  std::string fault;
  const UniqueFd file = open_trusted_file(path, &fault);
  if (!fault.empty()) return fault;
  struct stat status = {};
  if (fstat(file.get(), &status) != 0) return errno_text();
  if (std::uint64_t(status.st_size) > pack_size_limit) return "is too large";
  if (read_exactly(file.get(), std::size_t(status.st_size), bytes)) return {};
  return errno == 0 ? "is truncated" : "cannot be read: " + errno_text();
}

}  // namespace

std::string pack_key(std::string_view target,
                     const std::vector<std::string>& flags,
                     std::string_view source) {
  std::string key(key_start);
  key.append(target).append("\nflags:");
  for (const std::string& flag : flags) key.append(" ").append(flag);
  return key.append("\nsource:\n").append(source);
}

std::string pack_file(const std::vector<PackedKernel>& kernels) {
  std::string bytes(first_line);
  for (const PackedKernel& kernel : kernels) {
    append(&bytes, kernel.key.size());
    append(&bytes, kernel.object.size());
    bytes += kernel.key;
    bytes += kernel.object;
  }
  append(&bytes, bytes.size() - first_line.size());
  append(&bytes, content_hash(bytes));
  return bytes;
}

PackFile PackFile::read(const std::string& path, std::string* problem) {
  std::string bytes;
  *problem = read_trusted(path, &bytes);
  PackFile file;
  if (problem->empty()) *problem = file.take(std::move(bytes));
  return problem->empty() ? std::move(file) : PackFile();
}

std::string PackFile::take(std::string bytes) {
  if (std::string fault = whole_fault(bytes); !fault.empty()) return fault;
  bytes_ = std::move(bytes);
  const std::string_view all(bytes_);
  const std::size_t end = bytes_.size() - trailer_size;
  for (std::size_t at = first_line.size(); at < end;) {
    if (end - at < 2 * number_size) return "is damaged: an entry is cut off";
    const std::uint64_t key_size = number_at(bytes_, at);
    const std::uint64_t object_size = number_at(bytes_, at + number_size);
    at += 2 * number_size;
    if (key_size > end - at || object_size > end - at - key_size) {
      return "is damaged: its lengths do not match";
    }
    const std::string_view key = all.substr(at, key_size);
    entries_.emplace(content_hash(key),
                     Entry{at, at + key_size, at + key_size + object_size});
    const std::string target(target_of(key));
    if (std::find(targets_.begin(), targets_.end(), target) == targets_.end()) {
      targets_.push_back(target);
    }
    at += key_size + object_size;
  }
  return {};
}

std::string_view PackFile::find(std::string_view key) const {
  const std::string_view all(bytes_);
  const auto [begin, end] = entries_.equal_range(content_hash(key));
  for (auto each = begin; each != end; ++each) {
    const Entry& entry = each->second;
    if (all.substr(entry.key, entry.object - entry.key) == key) {
      return all.substr(entry.object, entry.end - entry.object);
    }
  }
  return {};
}

}  // namespace fuse
