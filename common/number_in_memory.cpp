#include "number_in_memory.h"

#include <cstring>

#include "devices.h"
#include "element.h"

namespace fuse {

double read_number(const ListView& list, SlotInfo info) {
  const Device device = device_of_memory(info.memory);
  double bytes = 0;  // room for any element
  if (device.is_cpu()) {
    std::memcpy(&bytes, list.addresses[0], size_of(info.dtype));
  } else {
    gpu_of(device)->copy_to_host(&bytes, list.addresses[0],
                                 size_of(info.dtype));
  }
  return with_type(info.dtype, [&](auto type) {
    return double(load_element<decltype(type)>(&bytes, 0));
  });
}

}  // namespace fuse
