#include "fusebook/jit/shared_object.h"

#include <dlfcn.h>
#include <elf.h>
#include <fmt/core.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>

#include "fusebook/jit/scratch_directory.h"
#include "fusebook/support/error.h"
#include "fusebook/support/file_io.h"

namespace fuse {
namespace {

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U
#endif

// dlopen trusts the lengths in a file, and touching a page beyond its end kills
// the process. Returns the problem, or an empty string.
std::string object_fault(const std::string& bytes) {
  ElfW(Ehdr) header;
  if (bytes.size() < sizeof(header)) return "it is too short";
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_type != ET_DYN || header.e_phentsize != sizeof(ElfW(Phdr))) {
    return "it is not a shared object for this machine";
  }
  const std::uint64_t table = header.e_phoff;
  const std::uint64_t table_size = header.e_phnum * sizeof(ElfW(Phdr));
  if (table > bytes.size() || table_size > bytes.size() - table) {
    return "it is truncated";
  }
  for (std::size_t i = 0; i < header.e_phnum; ++i) {
    ElfW(Phdr) part;
    std::memcpy(&part, bytes.data() + table + i * sizeof(part), sizeof(part));
    if (part.p_offset > bytes.size() ||
        part.p_filesz > bytes.size() - part.p_offset) {
      return "it is truncated";
    }
  }
  return {};
}

// For a path it has seen before dlopen returns the library loaded then, and
// descriptor numbers are reused, also by another copy of this library in the
// process. So every file has its own spelling: the bits of its inode number, which
// no other has while it is loaded, as "/" and "/.".
std::string unique_path(int fd, std::uint64_t inode) {
  std::string path = "/proc/self/fd";
  for (std::uint64_t bits = inode; bits != 0; bits >>= 1) {
    path += (bits & 1U) != 0 ? "/." : "/";
  }
  return fmt::format("{}/{}", path, fd);
}

// Kernels from 6.3 on want to know that the file is executable; older ones
// reject the flag.
UniqueFd make_memory_file() {
  UniqueFd file(memfd_create("fusebook-kernel", MFD_CLOEXEC | MFD_EXEC));
  if (!file.valid()) {
    file = UniqueFd(memfd_create("fusebook-kernel", MFD_CLOEXEC));
  }
  return file;
}

void* load_from_memory(const std::string& bytes) {
  const UniqueFd file = make_memory_file();
  struct stat known = {};
  if (!file.valid() || !write_all(file.get(), bytes) ||
      fstat(file.get(), &known) != 0) {
    return nullptr;
  }
  return dlopen(unique_path(file.get(), known.st_ino).c_str(),
                RTLD_NOW | RTLD_LOCAL);
}

// The fallback if memory files are refused, or /proc is missing.
void* load_from_disk(const std::string& bytes) {
  const ScratchDirectory scratch = make_temporary_directory();
  const std::string path = scratch.path() + "/kernel.so";
  if (!write_new_file(path, bytes)) {
    throw Error("cannot write the compiled kernel to '" + path +
                "': " + errno_text());
  }
  if (void* const handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {
    return handle;
  }
  const char* const why = dlerror();
  throw Error(std::string("the compiled kernel cannot be loaded: ") +
              (why != nullptr ? why : "no reason given"));
}

}  // namespace

void* load_shared_object(const std::string& bytes) {
  if (const std::string fault = object_fault(bytes); !fault.empty()) {
    throw Error("the compiled kernel cannot be loaded: " + fault);
  }
  void* const handle = load_from_memory(bytes);
  return handle != nullptr ? handle : load_from_disk(bytes);
}

}  // namespace fuse
