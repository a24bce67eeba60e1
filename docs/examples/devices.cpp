#include "example.h"

using namespace fuse;

EXAMPLE(devices) {
  for (const char* name : {"cpu", "cuda:1", "cuda-sim"}) {
    const Device device = parse_device(name);
    print(to_string(device), device.is_cpu() ? " is the host" : " is not");
  }
  const Tensor here = tensor({1.0, 2.0});
  const Tensor there = here.to(parse_device("cuda-sim"));
  foreach_mul_(TensorList{there}, 3);
  print(there, " computed by a simulated GPU");
}

EXAMPLE(errors) {
  try {
    parse_device("gpu");
  } catch (const UsageError& error) {
    print(error.what());
  }
  try {
    tensor({1.0, 2.0}).item();
  } catch (const Error& error) {
    print(error.what());
  }
}
