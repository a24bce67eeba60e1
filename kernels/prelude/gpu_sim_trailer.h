// Follows CUDA text that the simulator runs: how the host calls the kernel that
// FUSE_SIM_KERNEL names. The library never includes this file, only its text.
namespace fuse {
namespace device {
#ifdef FUSEBOOK_MATH_H
const Calls* calls;
#endif
}  // namespace device
}  // namespace fuse

template <class Kernel>
struct SimKernel;
template <class... Parameters>
struct SimKernel<void (*)(Parameters...)> {
  static unsigned long size(int k) {
    const unsigned long sizes[] = {sizeof(Parameters)..., 0};
    return sizes[k];
  }
  // Braces evaluate from left to right; a call need not.
  struct Call {
    Call(void (*kernel)(Parameters...), Parameters... values) {
      kernel(values...);
    }
  };
  static void call(void (*kernel)(Parameters...), void* const* values) {
    int k = 0;
    Call{kernel, *static_cast<const Parameters*>(values[k++])...};
  }
};

using namespace fuse::device;
#define FUSE_SIM_EXPORT extern "C" __attribute__((visibility("default")))

FUSE_SIM_EXPORT void fuse_sim_bind(SimThread* thread, const void* table) {
  fuse_sim = thread;
#ifdef FUSEBOOK_MATH_H
  calls = static_cast<const fuse::Calls*>(table);
#else
  (void)table;
#endif
}
// An address among the variables that a block shares.
FUSE_SIM_EXPORT void* fuse_sim_shared() {
  static thread_local char any;
  return &any;
}
FUSE_SIM_EXPORT unsigned long fuse_sim_size(int k) {
  return SimKernel<decltype(&FUSE_SIM_KERNEL)>::size(k);
}
FUSE_SIM_EXPORT void fuse_sim_call(void* const* values) {
  SimKernel<decltype(&FUSE_SIM_KERNEL)>::call(&FUSE_SIM_KERNEL, values);
}
