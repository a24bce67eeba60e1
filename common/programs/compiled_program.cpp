#include "fusebook/programs/compiled_program.h"

namespace fuse {

Device device_of(const Program& program) {
  for (const SlotInfo& slot : program.slots()) {
    if (slot.memory != 0) return device_of_memory(slot.memory);
  }
  return cpu_device;
}

}  // namespace fuse
