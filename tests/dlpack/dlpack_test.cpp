#include "fusebook/dlpack/dlpack.h"

#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "fusebook/compile/compile.h"
#include "fusebook/dlpack/dlpack_abi.h"
#include "fusebook/foreach/foreach.h"
#include "fusebook/support/error.h"
#include "support/tested_device.h"

using namespace fuse;

namespace {

// Another library: memory of its own, and a count of what was given back.
struct Lender {
  std::vector<float> memory = {0, 1, 2, 3, 4, 5};
  std::array<std::int64_t, 2> shape = {2, 3};
  std::array<std::int64_t, 2> strides = {1, 2};
  int returned = 0;

  DLTensor described() {
    DLTensor tensor = {};
    tensor.data = memory.data();
    tensor.device = {kDLCPU, 0};
    tensor.ndim = 2;
    tensor.dtype = {kDLFloat, 32, 1};
    tensor.shape = shape.data();
    tensor.strides = strides.data();
    return tensor;
  }
  template <class Managed>
  Managed managed() {
    Managed made = {};
    made.dl_tensor = described();
    made.manager_ctx = this;
    made.deleter = [](Managed* self) {
      ++static_cast<Lender*>(self->manager_ctx)->returned;
    };
    return made;
  }
  DLManagedTensorVersioned versioned() {
    auto made = managed<DLManagedTensorVersioned>();
    made.version = {1, 0};
    return made;
  }
};

template <class Change>
std::string message_of(Change change) {
  Lender lender;
  DLManagedTensorVersioned lent = lender.versioned();
  change(lent);
  std::string message = "no error";
  try {
    from_dlpack(&lent);
  } catch (const Error& error) {
    message = error.what();
    CHECK(lender.returned == 0);  // still the caller's
  }
  return message;
}

}  // namespace

TEST_CASE("memory that another library lends") {
  Lender lender;
  DLManagedTensorVersioned lent = lender.versioned();
  Tensor tensor = from_dlpack(&lent);
  CHECK(tensor.raw_data() == lender.memory.data());
  CHECK(tensor.shape() == Shape{2, 3});
  CHECK(tensor.strides() == Shape{1, 2});
  CHECK(tensor.to_vector() == std::vector<double>{0, 2, 4, 1, 3, 5});
  foreach_mul_(TensorList{tensor}, 2.0);
  CHECK(lender.memory == std::vector<float>{0, 2, 4, 6, 8, 10});
  Tensor part = tensor.select(0, 1);
  tensor = Tensor();
  CHECK(lender.returned == 0);
  part = Tensor();
  CHECK(lender.returned == 1);

  auto legacy = lender.managed<DLManagedTensor>();
  legacy.dl_tensor.strides = nullptr;
  legacy.dl_tensor.byte_offset = 4;
  legacy.dl_tensor.ndim = 1;
  Tensor rows = from_dlpack(&legacy);
  CHECK(rows.to_vector() == std::vector<double>{2, 4});
  rows = Tensor();
  CHECK(lender.returned == 2);

  DLManagedTensorVersioned forever = lender.versioned();
  forever.deleter = nullptr;
  CHECK(from_dlpack(&forever).numel() == 6);
  CHECK(lender.returned == 2);

  const DLTensor described = lender.described();
  CHECK(borrow_dlpack(described).raw_data() == lender.memory.data());
}

TEST_CASE("all dtypes and ranks, and empty tensors, go there and back") {
  for (const DType dtype :
       {DType::float32, DType::float64, DType::float16, DType::bfloat16}) {
    for (const Shape& shape :
         {Shape{}, Shape{3}, Shape{2, 0}, Shape{4, 1, 2}}) {
      const Tensor own = full(shape, 1.5, dtype);
      const Tensor again = from_dlpack(to_dlpack(own));
      CHECK(bitwise_equal(own, again));
      CHECK(again.raw_data() == own.raw_data());
      CHECK(bitwise_equal(own, from_dlpack(to_dlpack_unversioned(own))));
    }
  }
  const Tensor columns = tensor({1.0, 2.0, 3.0, 4.0}).view({2, 2}).t();
  CHECK(from_dlpack(to_dlpack(columns)).strides() == Shape{1, 2});
}

TEST_CASE("what is lent lives until it is given back") {
  auto owner = std::make_shared<std::vector<float>>(4, 2.0F);
  const std::weak_ptr<std::vector<float>> watch = owner;
  DLManagedTensorVersioned* lent = to_dlpack(
      Tensor::from_memory(owner->data(), {4}, {}, float32, {}, owner));
  owner.reset();
  CHECK(!watch.expired());
  CHECK(lent->version.major == 1);
  CHECK(lent->flags == 0);
  CHECK(lent->dl_tensor.ndim == 1);
  CHECK(lent->dl_tensor.shape[0] == 4);
  CHECK(lent->dl_tensor.strides[0] == 1);
  CHECK(lent->dl_tensor.dtype.bits == 32);
  CHECK(static_cast<const float*>(lent->dl_tensor.data)[3] == 2);
  std::thread([&] { lent->deleter(lent); }).join();
  CHECK(watch.expired());
}

TEST_CASE("codes are lent as the bytes they are") {
  const Tensor ones = full({3, 40}, 1);
  for (const DType dtype : {with_block_size(block8, 32), block8, ublock8}) {
    const Tensor coded = ones.to(dtype);
    CHECK_THROWS_AS(to_dlpack(coded), Error);
    CHECK_THROWS_AS(to_dlpack_unversioned(coded), Error);
    DLManagedTensorVersioned* const lent = codes_to_dlpack(coded);
    const DLTensor& told = lent->dl_tensor;
    const std::int64_t size = dtype == with_block_size(block8, 32) ? 32 : 120;
    const std::int64_t blocks = size == 32 ? 4 : 1;
    CHECK(told.ndim == 1);
    CHECK(told.shape[0] == 120 + 4 * blocks);
    CHECK(told.strides[0] == 1);
    CHECK(told.dtype.code == (dtype == ublock8 ? kDLUInt : kDLInt));
    CHECK(told.dtype.bits == 8);
    const auto* const bytes = static_cast<const unsigned char*>(told.data);
    for (std::int64_t b = 0; b < blocks; ++b) {
      const unsigned char* const block = bytes + b * (4 + size);
      float scale = 0;
      std::memcpy(&scale, block, 4);
      CHECK(scale == 1);
      for (std::int64_t i = 0; i < size && b * size + i < 120; ++i) {
        CHECK(int(block[4 + i]) == (dtype == ublock8 ? 254 : 127));
      }
    }
    lent->deleter(lent);
    DLManagedTensor* const old = codes_to_dlpack_unversioned(coded);
    CHECK(old->dl_tensor.shape[0] == 120 + 4 * blocks);
    old->deleter(old);
  }
  // What is not in 8 bits is lent as it is.
  DLManagedTensorVersioned* const plain = codes_to_dlpack(ones);
  CHECK(plain->dl_tensor.ndim == 2);
  CHECK(plain->dl_tensor.dtype.code == kDLFloat);
  plain->deleter(plain);
}

TEST_CASE("what is pending runs before a tensor is lent") {
  const Tensor one = tensor({1.0, 2.0});
  DLManagedTensorVersioned* lent = nullptr;
  std::vector<float> seen;
  auto step = compile([&] {
    foreach_add_(TensorList{one}, 1.0);
    lent = to_dlpack(one);
    const auto* const data = static_cast<const float*>(lent->dl_tensor.data);
    seen = {data[0], data[1]};
  });
  step();
  lent->deleter(lent);
  CHECK(seen == std::vector<float>{2, 3});
}

TEST_CASE("what cannot be borrowed stays with the lender") {
  using Lent = DLManagedTensorVersioned;
  const auto with_type = [](DLDataType type) {
    return message_of([=](Lent& lent) { lent.dl_tensor.dtype = type; });
  };
  CHECK(with_type({kDLInt, 64, 1}) ==
        "from_dlpack: the dtype int64 is not supported; use float32, float64, "
        "float16, bfloat16 or int16");
  CHECK(with_type({kDLBool, 8, 1}).find("the dtype bool is") !=
        std::string::npos);
  CHECK(with_type({kDLComplex, 64, 1}).find("complex64") != std::string::npos);
  CHECK(with_type({kDLFloat, 8, 1}).find("float8") != std::string::npos);
  CHECK(with_type({kDLFloat, 32, 4}).find("float32 in 4 lanes") !=
        std::string::npos);
  CHECK(with_type({99, 8, 1}).find("number 99") != std::string::npos);
  CHECK(message_of(
            [](Lent& lent) { lent.flags = DLPACK_FLAG_BITMASK_READ_ONLY; }) ==
        "from_dlpack: the memory may only be read, and a step would write it; "
        "lend a copy");
  CHECK(message_of([](Lent& lent) {
          lent.flags = DLPACK_FLAG_BITMASK_IS_COPIED;
        }) == "no error");
  CHECK(message_of([](Lent& lent) { lent.version = {2, 5}; }) ==
        "from_dlpack: the tensor comes in version 2.5 of DLPack, and version 1 "
        "is known here; ask the other library for that one");
  CHECK(message_of([](Lent& lent) { lent.version.minor = 9; }) == "no error");
  CHECK(
      message_of([](Lent& lent) { lent.dl_tensor.device.device_type = 10; }) ==
      "from_dlpack: memory of DLPack's device type 10 is not supported; copy "
      "it to the CPU or a CUDA GPU");
  CHECK(message_of([](Lent& lent) {
          lent.dl_tensor.device = {kDLCUDA, 1000};
        }) != "no error");
  CHECK(message_of([](Lent& lent) {
          lent.dl_tensor.strides[1] = -2;
        }).find("strides [1, -2] must not be negative") != std::string::npos);
  CHECK(message_of([](Lent& lent) {
          lent.dl_tensor.shape[0] = -1;
        }).find("sizes must not be negative") != std::string::npos);
  CHECK(message_of([](Lent& lent) {
          lent.dl_tensor.data = nullptr;
        }).find("the address is null") != std::string::npos);
  CHECK(
      message_of([](Lent& lent) { lent.dl_tensor.ndim = -1; }) ==
      "from_dlpack: the number of dimensions must not be negative, but is -1");
  CHECK(message_of([](Lent& lent) { lent.dl_tensor.shape = nullptr; }) ==
        "from_dlpack: a tensor of 2 dimensions has no sizes");
  DLManagedTensorVersioned* const none = nullptr;
  CHECK_THROWS_WITH_AS(from_dlpack(none),
                       "from_dlpack: expected a tensor, got null", Error);
  DLManagedTensor* const no_legacy = nullptr;
  CHECK_THROWS_WITH_AS(from_dlpack(no_legacy),
                       "from_dlpack: expected a tensor, got null", Error);
}

TEST_CASE("what cannot be lent") {
  const Tensor param = tensor({1.0});
  param.requires_grad_();
  CHECK_THROWS_WITH_AS(to_dlpack(param),
                       "to_dlpack: the tensor requires a gradient, which "
                       "another library would not pass on; lend its detach()",
                       Error);
  CHECK(from_dlpack(to_dlpack(param.detach())).item() == 1);
  const Device gpu = testing::tested_device();
  if (gpu.kind != Device::Kind::cuda_sim) return;
  CHECK_THROWS_WITH_AS(to_dlpack(tensor({1.0}).to(gpu)),
                       "to_dlpack: DLPack does not know the device cuda-sim; "
                       "lend a copy, cpu()",
                       Error);
}
