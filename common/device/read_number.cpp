#include "fusebook/device/read_number.h"

#include "fusebook/device/backend.h"
#include "fusebook/ops/element.h"

namespace fuse {

double read_number(const ListView& list, SlotInfo info) {
  const Device device = device_of_memory(info.memory);
  double bytes = 0;  // room for any element
  backend_of(device).copy_to_host(device.index, &bytes, list.addresses[0],
                                  size_of(info.dtype));
  return with_type(info.dtype, [&](auto type) {
    return double(load_element<decltype(type)>(&bytes, 0));
  });
}

}  // namespace fuse
