#include "fusebook/tensor/tensor_hash.h"

#include <cstdint>
#include <string_view>

#include "fusebook/support/content_hash.h"

namespace fuse {

std::string hash_of_bits(const std::vector<Tensor>& tensors) {
  std::uint64_t hash = 0;
  for (const Tensor& each : tensors) {
    check_defined(each, "one of the tensors");
    const Tensor host = each.detach().cpu().contiguous();
    const auto* const bytes = static_cast<const char*>(host.address(false));
    hash = content_hash(std::string_view(bytes, host.nbytes()), hash);
  }
  return hex_digits(hash);
}

}  // namespace fuse
