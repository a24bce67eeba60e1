#include "fusebook/device/cpu_backend.h"

#include <cstdio>
#include <cstring>
#include <mutex>

#include "fusebook/codegen/emit_kernel.h"
#include "fusebook/cpu/cpu_kernel.h"
#include "fusebook/device/allocator.h"
#include "fusebook/device/matrix_means_on_host.h"
#include "fusebook/device/sum_on_host.h"
#include "fusebook/support/error.h"
#include "fusebook/support/machine.h"

namespace fuse {
namespace {

// Explains once per process why steps are interpreted.
std::shared_ptr<Kernel> without_compiler(const Plan& plan,
                                         const std::string& why) {
  static std::once_flag said;
  std::call_once(said, [&] {
    std::fprintf(stderr, "fusebook: steps are interpreted: %s\n", why.c_str());
  });
  return make_interpreter(plan);
}

class CpuBackend final : public DeviceBackend {
 public:
  std::string name() const override { return "cpu"; }
  std::string model(int) const override { return cpu_name(); }

  bool is_host() const override { return true; }
  std::size_t alignment(std::size_t) const override { return 1; }
  std::shared_ptr<Storage> allocate(int, std::size_t bytes) override {
    return allocate_storage(bytes);
  }
  void copy_to_device(int, void* to, const void* from,
                      std::size_t bytes) override {
    copy(to, from, bytes);
  }
  void copy_to_host(int, void* to, const void* from,
                    std::size_t bytes) override {
    copy(to, from, bytes);
  }
  void copy_within(int, void* to, const void* from,
                   std::size_t bytes) override {
    copy(to, from, bytes);
  }
  void fill_bytes(int, void* to, unsigned char value,
                  std::size_t bytes) override {
    if (bytes > 0) std::memset(to, value, bytes);
  }
  void synchronize(int) override {}

  std::shared_ptr<Kernel> make_kernel(int, const Plan& plan) override {
    try {
      return make_cpu_kernel(generate_cpu_source(plan), plan.reduces());
    } catch (const NoCompiler& error) {
      return without_compiler(plan, error.what());
    }
  }
  std::shared_ptr<Kernel> make_quick_kernel(int, const Plan& plan) override {
    return make_interpreter(plan);
  }
  void sum_chunks(int, const SumWork& work) override { sum_on_host(work); }
  int average_matrices(int, const MatrixWork& work) override {
    average_on_host(work);
    return 1;
  }

 private:
  static void copy(void* to, const void* from, std::size_t bytes) {
    if (bytes > 0) std::memcpy(to, from, bytes);
  }
};

}  // namespace

std::unique_ptr<DeviceBackend> make_cpu_backend() {
  return std::make_unique<CpuBackend>();
}

}  // namespace fuse
