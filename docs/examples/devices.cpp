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

EXAMPLE(where_it_runs) {
  const Device before = default_device();
  set_default_device(parse_device("cuda-sim"));
  const Tensor x = tensor({1.0, 2.0});
  print("made on ", to_string(zeros({2}).device()), ", a number on ",
        to_string(tensor(1.0).device()));
  set_default_device(before);
  std::string why;
  require_device(best_device(&why));
  require_device(gpu_or_simulator());
  print("a model is named: ", !device_model(cpu_device).empty(),
        ", an architecture: ", !device_architecture(cpu_device).empty());
  try {
    require_device(parse_device("cuda:63"));
  } catch (const Error&) {
    print("there is no cuda:63");
  }
}

EXAMPLE(between_other_streams) {
  const Device device = gpu_or_simulator();
  Tensor param = tensor({1.0, 2.0}).to(device);
  SGD sgd({param}, {.lr = 0.5});
  void* const stream = nullptr;  // a cudaStream_t, the default one
  // Here your code would put on it what computes the gradients.
  param.set_grad(tensor({2.0, 2.0}).to(device));
  run_after(device, stream);
  sgd.step();
  run_before(device, stream);  // what comes there next sees the step
  print(param);
}

EXAMPLE(kernel_of_your_own) {
  const Device device = parse_device("cuda-sim");
  const CudaKernel twice(device, R"(
    extern "C" __global__ void twice(float* x, int count) {
      const int i = blockIdx.x * blockDim.x + threadIdx.x;
      if (i < count) x[i] *= 2;
    })",
                         "twice");
  const Tensor x = tensor({1.0, 2.0, 3.0}).to(device);
  auto* const elements = static_cast<float*>(x.raw_data());
  twice.launch({1}, {32}, elements, int(x.numel()));
  print(x);
  const GpuResources& resources = twice.resources();
  print("registers known: ", resources.registers >= 0);
}

EXAMPLE(kernels_compiled_ahead) {
  if (!load_kernels("training.kernels")) print("compiled when needed");
}

EXAMPLE(version) {
  const std::string words = version();
  print("parts: ", std::ranges::count(words, '.') + 1);
}
