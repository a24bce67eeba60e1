// Tensors and lists whose elements are codes of 8 bits in blocks.
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
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
#include "support/jit_testing.h"
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

// What the prelude makes of these, block by block, each as the only one.
template <class Codes>
std::vector<double> coded(const Tensor& from, std::int64_t size) {
  std::vector<device::bits8> bytes(std::size_t(size) + 4);
  const device::Blocks<Codes> alone(bytes.data());
  std::vector<float> values(std::size_t(from.numel()));
  for (std::int64_t i = 0; i < from.numel(); i += size) {
    const std::int64_t n = std::min(size, from.numel() - i);
    device::encode_block(from.data<float>() + i, n, alone, 0);
    device::decode_block(alone, 0, n, values.data() + i);
  }
  return {values.begin(), values.end()};
}

// Every float whose lower half is zero, and some again: beside their neighbours, or
// each block with all magnitudes and so with what is not finite, or that with numbers
// alone, which are not negative where no code is.
enum class Order { neighbours, spread, spread_numbers };
Tensor numbers_in(Order order, bool negative) {
  const std::int64_t numel = 65536 + 45;
  Tensor all = zeros({numel});
  float* const values = all.data<float>();
  for (std::int64_t i = 0; i < numel; ++i) {
    const std::int64_t upper = order == Order::neighbours ? i : i * 257;
    float value = std::bit_cast<float>(std::uint32_t(upper % 65536) << 16);
    if (order == Order::spread_numbers) {
      if (!std::isfinite(value)) value = 1;
      if (!negative) value = std::abs(value);
    }
    values[i] = value;
  }
  return all;
}

std::vector<std::int64_t> block_sizes() {
  return {32, 64, 128, 256, 512, 1024, 2048};
}

}  // namespace

TEST_CASE("tensors become codes and numbers again, on a GPU too") {
  for (const Device& device : {cpu_device, tested_device()}) {
    for (const Shape& shape : {Shape{5000}, Shape{3, 256}, Shape{}, Shape{0}}) {
      const Tensor some = random_numbers(shape, 1);
      const Tensor squares = random_numbers(shape, 2, false);
      for (const std::int64_t size : block_sizes()) {
        const DType with_sign = with_block_size(DType::block8, size);
        const DType without = with_block_size(DType::ublock8, size);
        const Tensor signed_codes = some.to(device).to(with_sign);
        const Tensor codes = squares.to(device).to(without);
        CHECK(signed_codes.to_vector() ==
              coded<device::SignedCodes>(some, size));
        CHECK(codes.to_vector() == coded<device::UnsignedCodes>(squares, size));
        CHECK(codes.to(DType::float64).to_vector() == codes.to_vector());
        CHECK(codes.to(DType::block8).dtype() == DType::block8);
        CHECK(bitwise_equal(codes.clone(), codes));
        CHECK(bitwise_equal(codes.to(device), codes.cpu().to(device)));
        const std::int64_t numel = codes.numel();
        CHECK(codes.nbytes() ==
              std::size_t(numel + (numel + size - 1) / size * 4));
        CHECK(bitwise_equal(codes.to(DType::float32).to(without), codes));
        CHECK(bitwise_equal(codes.to(DType::ublock8),
                            codes.to(DType::float32).to(DType::ublock8)));
      }
    }
  }
}

TEST_CASE("the size of blocks is part of the type") {
  CHECK(block_size_of(DType::block8) == 256);
  CHECK(block_size_of(DType::float32) == 1);
  CHECK(block_size_of(DType::int16) == 1);
  CHECK(with_block_size(DType::ublock8, 256) == DType::ublock8);
  for (const std::int64_t size : block_sizes()) {
    for (const DType codes : {DType::block8, DType::ublock8}) {
      const DType type = with_block_size(codes, size);
      CHECK(in_blocks(type));
      CHECK(block_size_of(type) == size);
      CHECK(has_sign(type) == (codes == DType::block8));
      CHECK(size_of(type) == 1);
      CHECK(bytes_of(type, 5000) ==
            std::size_t(5000 + (5000 + size - 1) / size * 4));
      CHECK(value_type(type) == DType::float32);
      CHECK((type == codes) == (size == 256));
      const std::string name = size == 256 ? "" : "_" + std::to_string(size);
      CHECK(name_of(type) == name_of(codes) + name);
      CHECK(with_block_size(type, 256) == codes);
    }
  }
  for (const std::int64_t size : {0, 1, 16, 48, 100, 4096, -32}) {
    CHECK(!is_block_size(size));
    CHECK(message_of<Error>([&] { with_block_size(DType::block8, size); }) ==
          "a block must have a power of two of elements, from 32 to 2048, but "
          "is to have " +
              std::to_string(size));
  }
  CHECK(message_of<Error>([] { with_block_size(DType::float32, 128); }) ==
        "with_block_size takes block8 or ublock8, not float32, whose elements "
        "are not in blocks");
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

TEST_CASE("elements in lanes get the codes of single ones, and are the same") {
  for (const DType codes : {DType::block8, DType::ublock8}) {
    std::vector<Tensor> numbers;
    std::vector<Tensor> expected;
    std::vector<Tensor> decoded;
    for (const Order order :
         {Order::neighbours, Order::spread, Order::spread_numbers}) {
      numbers.push_back(numbers_in(order, has_sign(codes)));
      expected.push_back(numbers.back().to(codes));
      decoded.push_back(expected.back().to(DType::float32));
    }
    jit_testing::with_all_registers([&] {
      std::vector<Tensor> coded;
      std::vector<Tensor> again;
      for (const Tensor& tensor : numbers) {
        again.push_back(zeros(tensor.shape()));
        coded.push_back(again.back().to(codes));
      }
      const TensorList from(numbers);
      const TensorList to(coded);
      compile([&] { foreach_copy_(to, from); })();
      CHECK(bitwise_equal(coded, expected));
      const TensorList back(again);
      compile([&] { foreach_copy_(back, foreach_to(to, DType::float32)); })();
      CHECK(bitwise_equal(again, decoded));
    });
  }
}

namespace {

// Stores 5000 numbers of which some are `value`, and checks that these are NaN and
// that the others are what they are beside zeros.
template <class Codes>
void check_spoilt(DType codes, float value) {
  constexpr std::int64_t places[] = {0, 40, 777, 3000, 4999};
  const Tensor spoilt = random_numbers({5000}, 7, has_sign(codes));
  Tensor healthy = spoilt.clone();
  for (const std::int64_t i : places) {
    Tensor(spoilt).data<float>()[i] = value;
    healthy.data<float>()[i] = 0;
  }
  const auto expected = coded<Codes>(healthy, block_size_of(codes));
  testing::in_every_mode([&](const testing::Run& run) {
    const Tensor stored = zeros({5000}, codes);
    const TensorList from({spoilt});
    const TensorList to({stored});
    run([&] { foreach_copy_(to, from); });
    std::vector<double> values = stored.to_vector();
    for (const std::int64_t i : places) {
      CHECK(std::isnan(values[std::size_t(i)]));
      values[std::size_t(i)] = 0;
    }
    CHECK(values == expected);
  });
}

}  // namespace

TEST_CASE("what is not finite spoils no neighbour, in blocks of any size") {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  for (const std::int64_t size : block_sizes()) {
    CAPTURE(size);
    for (const float value : {infinity, -infinity, std::nanf("")}) {
      CAPTURE(value);
      check_spoilt<device::SignedCodes>(with_block_size(DType::block8, size),
                                        value);
      check_spoilt<device::UnsignedCodes>(with_block_size(DType::ublock8, size),
                                          value);
    }
  }
}

TEST_CASE("blocks of several sizes meet in one operation") {
  const std::vector<std::vector<std::int64_t>> together = {
      {32, 2048}, {64, 256, 32}, {1024, 128, 512}};
  for (const auto& sizes : together) {
    testing::in_every_mode([&](const testing::Run& run) {
      std::vector<std::vector<Tensor>> tensors;
      std::vector<TensorList> lists;
      for (const std::int64_t size : sizes) {
        tensors.emplace_back();
        for (const std::int64_t numel : {5000, 2048, 33, 0, 70001}) {
          const Tensor numbers =
              random_numbers({numel}, std::uint64_t(numel + size));
          tensors.back().push_back(
              numbers.to(with_block_size(DType::block8, size)));
        }
        lists.emplace_back(tensors.back());
      }
      std::vector<std::vector<Tensor>> expected;
      for (std::size_t k = 0; k < sizes.size(); ++k) {
        expected.emplace_back();
        const auto& from = tensors[(k + 1) % sizes.size()];
        for (std::size_t i = 0; i < from.size(); ++i) {
          expected.back().push_back(
              from[i].to(DType::float32).to(tensors[k][i].dtype()));
        }
      }
      run([&] {  // each becomes what the next one was
        std::vector<TensorList> floats;
        for (const TensorList& list : lists) {
          floats.push_back(foreach_to(list, DType::float32));
        }
        for (std::size_t k = 0; k < lists.size(); ++k) {
          foreach_copy_(lists[k], floats[(k + 1) % lists.size()]);
        }
      });
      for (std::size_t k = 0; k < sizes.size(); ++k) {
        CHECK(bitwise_equal(tensors[k], expected[k]));
      }
    });
  }
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
