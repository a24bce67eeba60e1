#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fuse {

/// Reads a file of kernels that `fusebook-pack` compiled ahead: from now on a
/// kernel that it holds is taken from there, and no compiler is looked for. The
/// environment variable FUSEBOOK_KERNELS names such a file, too. The file must
/// belong to this user or root, be no link, and not be writable by others, nor
/// may the folder that it lies in. Returns false, after one warning that says
/// why, if it cannot be used; kernels are then compiled, or interpreted, as
/// without it. May be called several times; what was read last is searched
/// first.
bool load_kernels(const std::string& path);

/// True if a file of kernels was read.
bool have_packed_kernels();

/// What was compiled under this key (see `pack_key`); null if no file has it.
/// What it points to stays there until the process ends.
std::string_view find_packed(std::string_view key);

/// The targets of all kernels that were read.
std::vector<std::string> packed_targets();

/// Files that were read, for messages: "the packed kernels 'a'".
std::string packed_names();

}  // namespace fuse
