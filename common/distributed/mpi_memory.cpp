#include "fusebook/distributed/mpi_memory.h"

#include <dlfcn.h>

namespace fuse {
namespace {

std::optional<bool>& forced() {
  static std::optional<bool> answer;
  return answer;
}

// Which header declares it depends on the library and its version.
bool has_cuda_support() {
  using Query = int (*)();
  static const auto query =
      reinterpret_cast<Query>(dlsym(RTLD_DEFAULT, "MPIX_Query_cuda_support"));
  return query != nullptr && query() == 1;
}

}  // namespace

bool mpi_reaches(const Device& device) {
  if (device.is_cpu()) return true;
  if (forced()) return *forced();
  return device.kind == Device::Kind::cuda && has_cuda_support();
}

void set_mpi_reaches_gpus(std::optional<bool> answer) { forced() = answer; }

}  // namespace fuse
