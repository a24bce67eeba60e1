#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "fusebook/compile/compile.h"
#include "fusebook/device/device_registry.h"
#include "fusebook/foreach/foreach.h"
#include "fusebook/reports/counters.h"
#include "fusebook/support/error.h"
#include "fusebook/tensor/tensor.h"
#include "support/tested_device.h"

using namespace fuse;

namespace {

constexpr std::int64_t huge = std::numeric_limits<std::int64_t>::max();

std::string message_of(void* data, const Shape& shape, const Shape& strides,
                       DType dtype = DType::float32,
                       const Device& device = cpu_device) {
  try {
    Tensor::from_memory(data, shape, strides, dtype, device);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("strides say where the elements are") {
  std::array<float, 8> memory = {0, 1, 2, 3, 4, 5, 6, 7};
  const Tensor columns = Tensor::from_memory(memory.data(), {3, 2}, {1, 4});
  CHECK(columns.to_vector() == std::vector<double>{0, 4, 1, 5, 2, 6});
  CHECK(columns.raw_data() == memory.data());
  CHECK(columns.strides() == Shape{1, 4});
  CHECK(!columns.is_contiguous());

  const Tensor rows = Tensor::from_memory(memory.data(), {2, 3});
  CHECK(rows.strides() == Shape{3, 1});
  CHECK(rows.is_contiguous());
  CHECK(rows.to_vector() == std::vector<double>{0, 1, 2, 3, 4, 5});
  CHECK(Tensor::from_memory(memory.data() + 7, {}).item() == 7);

  // Dimensions of size 1 may have any stride.
  CHECK(Tensor::from_memory(memory.data(), {1, 8}, {999, 1}).is_contiguous());
  const Tensor repeated = Tensor::from_memory(memory.data() + 2, {3}, {0});
  CHECK(repeated.to_vector() == std::vector<double>{2, 2, 2});
  CHECK_THROWS_AS(Tensor(repeated).fill_(1), Error);
  CHECK(Tensor::from_memory(nullptr, {2, 0}, {0, 1}).numel() == 0);
}

TEST_CASE("a step stores through strides and nowhere else") {
  std::vector<float> memory(12, 1);
  std::vector<float> grads = {1, 2, 3, 4, 5, 6};
  const Tensor even = Tensor::from_memory(memory.data(), {3, 2}, {4, 2});
  const Tensor grad = Tensor::from_memory(grads.data(), {3, 2}, {1, 3});
  auto step = compile(
      [&] { foreach_add_scaled_(TensorList{even}, TensorList{grad}, 10.0); });
  step();
  CHECK(memory == std::vector<float>{11, 1, 41, 1, 21, 1, 51, 1, 31, 1, 61, 1});
}

TEST_CASE("an owner lives exactly as long as the memory is shown") {
  auto owner = std::make_shared<std::vector<float>>(6, 2.0F);
  const std::weak_ptr<std::vector<float>> watch = owner;
  Tensor whole =
      Tensor::from_memory(owner->data(), {2, 3}, {}, float32, {}, owner);
  owner.reset();
  CHECK(watch.use_count() == 1);
  Tensor part = whole.select(0, 1).narrow(0, 1, 2);
  whole = Tensor();
  CHECK(watch.use_count() == 1);
  {
    const TensorList list{part};
    part = Tensor();
    CHECK(watch.use_count() == 1);
    CHECK(list[0].to_vector() == std::vector<double>{2, 2});
  }
  CHECK(watch.expired());

  // An error releases it.
  auto unused = std::make_shared<std::vector<float>>(1);
  CHECK_THROWS_AS(Tensor::from_memory(unused->data(), {1}, {-1}, float32,
                                      cpu_device, unused),
                  Error);
  CHECK(unused.use_count() == 1);
}

TEST_CASE("memory that cannot be a tensor is refused") {
  std::array<float, 8> memory{};
  float* const data = memory.data();
  CHECK(message_of(data, {2, -1}, {1, 1}) ==
        "invalid shape [2, -1]: sizes must not be negative");
  CHECK(message_of(data, {2, 3}, {1}) ==
        "from_memory: strides [1] do not name each dimension once (the tensor "
        "has shape [2, 3])");
  CHECK(message_of(data, {}, {1}) ==
        "from_memory: strides [1] do not name each dimension once (the tensor "
        "has shape [])");
  CHECK(message_of(data, {4}, {-1}) ==
        "from_memory: strides [-1] must not be negative; copy the elements to "
        "memory in another order (the tensor has shape [4])");
  CHECK(message_of(data, {huge}, {1}) ==
        "invalid shape [9223372036854775807]: the size in bytes exceeds 64 "
        "bits");
  CHECK(message_of(data, {3, 2}, {huge / 2, 2}) ==
        "from_memory: strides [4611686018427387903, 2] reach beyond 64 bits "
        "(the tensor has shape [3, 2])");
  CHECK(message_of(data, {2}, {huge / 4}) ==
        "from_memory: strides [2305843009213693951] reach beyond 64 bits (the "
        "tensor has shape [2])");
  CHECK(message_of(data, {2, 0}, {1, -1}).find("negative") !=
        std::string::npos);
  CHECK(message_of(nullptr, {2}, {1}) ==
        "from_memory: the address is null (the tensor has shape [2])");
  auto* const high =
      reinterpret_cast<void*>(~std::uintptr_t(7));  // NOLINT: not read
  CHECK(message_of(high, {4}, {1}) ==
        "from_memory: the memory would end beyond the last address (the tensor "
        "has shape [4])");
}

TEST_CASE("memory of another device") {
  const Device gpu = testing::tested_device();
  const Tensor there = tensor({1.0, 2.0, 3.0, 4.0}).to(gpu);
  auto* const data = static_cast<char*>(there.raw_data());
  const Tensor every_other =
      Tensor::from_memory(data, {2}, {2}, float32, gpu, there.impl()->storage);
  CHECK(every_other.device() == gpu);
  CHECK(every_other.to_vector() == std::vector<double>{1, 3});
  // Kernels on a GPU read whole elements only.
  CHECK(message_of(data + 2, {1}, {}, float32, gpu)
            .find("is not aligned to 4 bytes, as " + to_string(gpu)) !=
        std::string::npos);
  CHECK(message_of(data + 2, {1}, {}, float32) == "no error");
  CHECK(message_of(data, {1}, {}, float32, {Device::Kind::registered}) !=
        "no error");
}
