// Tensors and lists whose elements are codes of 8 bits in blocks.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "fusebook/compile/compile.h"
#include "fusebook/dlpack/dlpack.h"
#include "fusebook/foreach/foreach.h"
#include "fusebook/prelude/blocks.h"
#include "fusebook/support/error.h"
#include "fusebook/tensor/tensor.h"
#include "fusebook/tensor/tensor_list.h"
#include "support/every_mode.h"
#include "support/step_testing.h"
#include "support/tested_device.h"

using namespace fuse;
using step_testing::random_tensor;
using testing::contains;
using testing::message_of;
using testing::tested_device;

namespace {

Tensor random_numbers(const Shape& shape, std::uint64_t seed,
                      bool negative = true) {
  testing::Random random(seed);
  Tensor made = random_tensor(shape, random, 1.0);
  if (negative) return made;
  float* const values = made.data<float>();
  for (std::int64_t i = 0; i < made.numel(); ++i) values[i] *= values[i];
  return made;
}

// What the prelude makes of these, block by block.
template <class Codes>
std::vector<double> coded(const Tensor& from) {
  std::vector<device::bits8> bytes(std::size_t(bytes_in_blocks(from.numel())));
  const device::Blocks<Codes> blocks(bytes.data());
  std::vector<double> values;
  for (std::int64_t i = 0; i < from.numel(); ++i) {
    if (i % block_size == 0) {
      const std::int64_t n =
          std::min<std::int64_t>(block_size, from.numel() - i);
      device::encode_block(from.data<float>() + i, n, blocks, i / block_size);
    }
    values.push_back(double(blocks[i]));
  }
  return values;
}

}  // namespace

TEST_CASE("tensors become codes and numbers again, on a GPU too") {
  for (const Device& device : {cpu_device, tested_device()}) {
    for (const Shape& shape : {Shape{1000}, Shape{3, 256}, Shape{}, Shape{0}}) {
      const Tensor some = random_numbers(shape, 1);
      const Tensor squares = random_numbers(shape, 2, false);
      const Tensor signed_codes = some.to(device).to(DType::block8);
      const Tensor codes = squares.to(device).to(DType::ublock8);
      CHECK(signed_codes.to_vector() == coded<device::SignedCodes>(some));
      CHECK(codes.to_vector() == coded<device::UnsignedCodes>(squares));
      CHECK(codes.to(DType::float64).to_vector() == codes.to_vector());
      CHECK(codes.to(DType::block8).dtype() == DType::block8);
      CHECK(bitwise_equal(codes.clone(), codes));
      CHECK(bitwise_equal(codes.to(device), codes.cpu().to(device)));
      CHECK(codes.to(DType::float32).to(DType::ublock8).nbytes() ==
            std::size_t(bytes_in_blocks(codes.numel())));
      CHECK(bitwise_equal(codes.to(DType::float32).to(DType::ublock8), codes));
    }
  }
}

TEST_CASE("filled tensors, and single numbers") {
  for (const Device& device : {cpu_device, tested_device()}) {
    Tensor codes = full({600}, 0.75, DType::ublock8, device);
    CHECK(codes.to_vector() == std::vector<double>(600, 0.75));
    CHECK(codes.nbytes() == 600 + 3 * 4);
    codes.fill_(0);
    CHECK(codes.to_vector() == std::vector<double>(600, 0.0));
    CHECK(bitwise_equal(
        codes, zeros({600}, DType::float32, device).to(DType::ublock8)));
    CHECK(full({}, -2.0, DType::block8, device).item() == -2.0);
    CHECK(codes.sum().item() == 0);
  }
  CHECK(to_string(full({2}, 1.0, DType::block8)) ==
        "tensor([1., 1.], dtype=block8)");
  Tensor copied = zeros({4}, DType::block8);
  copied.copy_(
      tensor({1.0, 2.0}).view({2, 1}).expand({2, 2}).contiguous().view({4}));
  CHECK(copied.to_vector()[3] == 2.0);
  CHECK(copied.view({2, 2}).to_vector() == copied.to_vector());
}

TEST_CASE("what needs elements of their own is refused") {
  Tensor codes = zeros({4, 4}, DType::block8);
  const auto refuses = [](auto call, const char* who) {
    const std::string message = message_of<Error>(call);
    CHECK_MESSAGE(contains(message, who), message);
    CHECK_MESSAGE(contains(message, "convert with to(DType::float32)"),
                  message);
  };
  refuses([&] { codes.t(); }, "a view of some elements");
  refuses([&] { codes.narrow(0, 1, 2); }, "a view of some elements");
  refuses([&] { codes.narrow(0, 0, 2); }, "a view of some elements");
  refuses([&] { zeros({1}, DType::block8).expand({4}); },
          "a view of some elements");
  refuses([&] { scalars(3, DType::ublock8); }, "scalars does not take ublock8");
  refuses([&] { TensorList::per_tensor({zeros({}, DType::block8)}); },
          "a list of per-tensor scalars does not take block8");
  refuses([&] { to_dlpack(codes); }, "to_dlpack does not take block8");
  refuses([&] { tensor({1.0}, DType::block8); }, "cannot be used one by one");
  float numbers[8] = {};
  refuses([&] { Tensor::from_memory(numbers, {4}, {}, DType::block8); },
          "Tensor::from_memory does not take block8");
  CHECK(contains(message_of<Error>([&] { codes.data<float>(); }),
                 "a tensor of dtype block8"));
}

TEST_CASE("lists are read as float32, and coded when they are stored") {
  const std::vector<Shape> shapes = {{1000}, {256}, {7}, {0}, {70000}};
  testing::in_every_mode([&](const testing::Run& run) {
    std::vector<Tensor> numbers;
    std::vector<Tensor> codes;
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      numbers.push_back(random_numbers(shapes[i], i + 1));
      codes.push_back(random_numbers(shapes[i], i + 50).to(DType::block8));
    }
    const std::vector<Tensor> before = step_testing::copies(numbers);
    std::vector<Tensor> expected;
    for (std::size_t i = 0; i < codes.size(); ++i) {
      const std::vector<double> stored = codes[i].to_vector();
      Tensor sum = numbers[i].clone();
      float* const values = sum.data<float>();
      for (std::int64_t k = 0; k < sum.numel(); ++k) {
        values[k] = values[k] + 2 * float(stored[std::size_t(k)]);
      }
      expected.push_back(sum);
    }
    const TensorList list(numbers, "numbers");
    const TensorList coded(codes, "codes");
    TensorList sums;
    run([&] {
      sums = foreach_add_scaled(list, foreach_to(coded, DType::float32), 2.0);
      foreach_copy_(coded, sums);
    });
    CHECK(bitwise_equal(sums.tensors(), expected));
    CHECK(sums.impl()->dtype == DType::float32);
    for (std::size_t i = 0; i < codes.size(); ++i) {
      CHECK(bitwise_equal(codes[i], expected[i].to(DType::block8)));
    }
    CHECK(bitwise_equal(numbers, before));
  });
}

TEST_CASE("a list that was stored is decoded before it is used again") {
  const auto steps = [](const TensorList& codes) {
    foreach_mul_(codes, 0.7);
    foreach_add_(codes, 0.01);
    foreach_mul_(codes, codes);
  };
  Tensor eager = random_numbers({1000}, 3).to(DType::block8);
  steps(TensorList({eager}));
  for (const Backend backend :
       {Backend::compiled, Backend::interpreted, Backend::simulated}) {
    Tensor codes = random_numbers({1000}, 3).to(DType::block8);
    const TensorList list({codes});
    auto run = compile([&] { steps(list); }, {.backend = backend});
    run();
    CHECK(bitwise_equal(codes, eager));
    CHECK(run.counters().graph_breaks == 2);
  }
}
