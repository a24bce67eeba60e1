#include "fusebook/device/streams.h"

#include "fusebook/device/backend.h"

namespace fuse {

void run_after(const Device& device, void* stream) {
  backend_of(device).run_after(device.index, stream);
}

void run_before(const Device& device, void* stream) {
  backend_of(device).run_before(device.index, stream);
}

}  // namespace fuse
