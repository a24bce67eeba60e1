// Tensors of 16-bit numbers on the host: access, conversions, text, files.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "fusebook/checkpoint/checkpoint.h"
#include "fusebook/checkpoint/safetensors.h"
#include "fusebook/compile/compile.h"
#include "fusebook/nn/loss.h"
#include "fusebook/nn/model.h"
#include "fusebook/ops/element.h"
#include "fusebook/optim/adam.h"
#include "fusebook/support/error.h"
#include "fusebook/tensor/random.h"
#include "support/reduced.h"
#include "support/step_testing.h"

using namespace fuse;
using namespace step_testing;
using jit_testing::read_text;
using jit_testing::TempDir;
using testing::contains;
using testing::same_value;

namespace {

const double infinity = std::numeric_limits<double>::infinity();
const double not_a_number = std::numeric_limits<double>::quiet_NaN();

// Rounds in every dtype, with the odd ones among them.
const std::vector<double> awkward = {0.1,
                                     -0.1,
                                     1.0 / 3,
                                     1 + 0x1p-8 + 0x1p-40,
                                     1 + 0x1p-11 + 0x1p-40,
                                     -0.0,
                                     1e-8,
                                     65519,
                                     65520,
                                     1e300,
                                     -infinity,
                                     not_a_number};

template <class Reduced>
Tensor of_bits(const std::vector<std::uint16_t>& bits) {
  Tensor result = empty({std::int64_t(bits.size())}, dtype_of<Reduced>);
  for (std::size_t i = 0; i < bits.size(); ++i) {
    result.data<Reduced>()[i].bits = bits[i];
  }
  return result;
}

bool equal(const std::vector<double>& a, const std::vector<double>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), same_value<double>);
}

std::vector<double> rounded(DType dtype, std::vector<double> values) {
  for (double& value : values) value = reduced::round(dtype, value);
  return values;
}

}  // namespace

TEST_CASE("the types as such") {
  CHECK(int(DType::float32) == 0);
  CHECK(int(DType::float64) == 1);
  CHECK(int(DType::float16) == 2);
  CHECK(int(DType::bfloat16) == 3);
  CHECK(name_of(DType::float16) == std::string("float16"));
  CHECK(name_of(DType::bfloat16) == std::string("bfloat16"));
  for (const DType dtype : reduced::all_dtypes) {
    const bool is_16_bit = size_of(dtype) == 2;
    CHECK(is_reduced(dtype) == is_16_bit);
    CHECK(compute_type(dtype) == (is_16_bit ? DType::float32 : dtype));
  }
  CHECK(size_of(DType::float16) == 2);
  CHECK(size_of(DType::bfloat16) == 2);
  CHECK(bfloat16 == DType::bfloat16);
}

TEST_CASE_TEMPLATE("typed access", Reduced, Float16, BFloat16) {
  const DType dtype = dtype_of<Reduced>;
  Tensor a = tensor({1.0, -2.5, 0.1}, dtype);
  CHECK(a.nbytes() == 6);
  CHECK(float(a.data<Reduced>()[1]) == -2.5F);
  a.data<Reduced>()[0] = Reduced(3);
  CHECK(a.to_vector() ==
        std::vector<double>{3, -2.5, reduced::round(dtype, 0.1)});
  CHECK_THROWS_AS(a.data<float>(), Error);
  CHECK_THROWS_AS(tensor(1.0).data<Reduced>(), Error);
  CHECK(tensor(0.1, dtype).item() == reduced::round(dtype, 0.1));
}

TEST_CASE("the wrong type is named") {
  Tensor a = tensor(1.0, DType::float16);
  CHECK_THROWS_WITH_AS(
      a.data<BFloat16>(),
      "data<BFloat16>() was called on a tensor of dtype float16", Error);
  CHECK_THROWS_WITH_AS(
      tensor(1.0, DType::bfloat16).data<Float16>(),
      "data<Float16>() was called on a tensor of dtype bfloat16", Error);
}

TEST_CASE("making, filling and copying round once") {
  for (const DType dtype : reduced::types) {
    CAPTURE(name_of(dtype));
    const std::vector<double> wanted = rounded(dtype, awkward);
    CHECK(equal(tensor(awkward, dtype).to_vector(), wanted));
    for (std::size_t i = 0; i < awkward.size(); ++i) {
      const double value = awkward[i];
      CHECK(same_value(tensor(value, dtype).item(), wanted[i]));
      CHECK(same_value(full({2}, value, dtype).to_vector()[1], wanted[i]));
      Tensor filled = zeros({2}, dtype);
      filled.fill_(value);
      CHECK(same_value(filled.to_vector()[1], wanted[i]));
    }
    CHECK(zeros_like(tensor(awkward, dtype)).dtype() == dtype);
    const Tensor copy = tensor(awkward, dtype).clone();
    CHECK(copy.dtype() == dtype);
    CHECK(equal(copy.to_vector(), wanted));
    for (const Tensor& scalar : scalars(3, dtype)) {
      CHECK(scalar.dtype() == dtype);
      CHECK(scalar.item() == 0);
    }
  }
}

TEST_CASE("copy_ and to convert between all dtypes") {
  for (const DType from : reduced::all_dtypes) {
    const Tensor source = tensor(awkward, from);
    for (const DType to : reduced::all_dtypes) {
      CAPTURE(name_of(from));
      CAPTURE(name_of(to));
      const auto wanted = rounded(to, source.to_vector());
      Tensor target = zeros(source.shape(), to);
      target.copy_(source);
      CHECK(equal(target.to_vector(), wanted));
      const Tensor converted = source.to(to);
      CHECK(converted.dtype() == to);
      CHECK(converted.shape() == source.shape());
      CHECK(equal(converted.to_vector(), wanted));
      CHECK((converted.impl() == source.impl()) == (from == to));
    }
  }
  CHECK(zeros({2, 0}).to(DType::float16).shape() == Shape{2, 0});
}

TEST_CASE("to() of a pending value computes it first") {
  const TensorList list = {tensor({1, 2})};
  Tensor seen;
  auto step = compile([&] {
    foreach_add_(list, 1.0);
    seen = list[0].to(DType::bfloat16);
  });
  step();
  CHECK(seen.to_vector() == std::vector<double>{2, 3});
  CHECK(step.counters().graph_breaks == 1);
}

TEST_CASE("copy_ in place, where the memory overlaps") {
  std::vector<unsigned char> bytes(64);
  Tensor floats = from_blob(bytes.data(), {4});
  floats.copy_(tensor({1, 2, 3, 4}));
  Tensor halves = from_blob(bytes.data() + 3, {4}, DType::float16);
  halves.copy_(floats);
  CHECK(halves.to_vector() == std::vector<double>{1, 2, 3, 4});
}

TEST_CASE("sums add doubles") {
  for (const DType dtype : reduced::types) {
    // In 16 bits, the sum would stop growing at 256 or 2048.
    const Tensor sum = full({4096}, 1, dtype).sum();
    CHECK(sum.dtype() == dtype);
    CHECK(sum.item() == 4096);
    CHECK(tensor({1.0, 1 + 0x1p-7, 0x1p-20}, dtype).sum().item() ==
          reduced::round(dtype, 2 + 0x1p-7 + 0x1p-20));
  }
}

TEST_CASE("a gradient keeps the dtype that it was given in") {
  Tensor a = tensor({1.0, 2.0}, DType::bfloat16);
  a.set_grad(tensor({0.5, 0.5}, DType::bfloat16));
  CHECK(a.grad().dtype() == DType::bfloat16);
  a.set_grad(tensor({0.5, 0.5}));
  CHECK(a.grad().dtype() == DType::float32);
  CHECK(mse_loss(a, zeros({2}, DType::bfloat16)).item() == 2.5);
  CHECK(mse_loss(a, zeros({2}, DType::bfloat16)).dtype() == DType::bfloat16);
}

TEST_CASE("text says the dtype") {
  CHECK(to_string(tensor({1.0, 2.0}, DType::bfloat16)) ==
        "tensor([1., 2.], dtype=bfloat16)");
  CHECK(to_string(tensor(0.1, DType::float16)) ==
        "tensor(0.1000, dtype=float16)");
  CHECK(to_string(tensor(0.1, DType::bfloat16)) ==
        "tensor(0.1001, dtype=bfloat16)");
  CHECK(to_string(tensor({1.0, -infinity, not_a_number}, DType::float16)) ==
        "tensor([1., -inf, nan], dtype=float16)");
  CHECK(to_string(empty({2, 0}, DType::float16)) ==
        "tensor([], size=(2, 0), dtype=float16)");
}

TEST_CASE("bitwise_equal and allclose") {
  const Tensor a = of_bits<BFloat16>({0x3f80, 0x7fc0, 0x0000, 0x0001});
  // Another NaN.
  CHECK(bitwise_equal(a, of_bits<BFloat16>({0x3f80, 0xff81, 0x0000, 0x0001})));
  CHECK_FALSE(
      bitwise_equal(a, of_bits<BFloat16>({0x3f80, 0x7fc0, 0x8000, 0x0001})));
  CHECK_FALSE(
      bitwise_equal(a, of_bits<BFloat16>({0x3f80, 0x7fc0, 0x0000, 0x0002})));
  // The same bits in another type are other numbers.
  CHECK_FALSE(
      bitwise_equal(of_bits<BFloat16>({0x3f80}), of_bits<Float16>({0x3f80})));
  const Tensor one = tensor({1.0}, DType::bfloat16);
  const Tensor next = tensor({1 + 0x1p-7}, DType::bfloat16);
  CHECK_FALSE(allclose(one, next));
  CHECK(allclose(one, next, 0x1p-7));
  CHECK_THROWS_AS(allclose(one, tensor({1.0})), Error);
}

TEST_CASE("memory at odd addresses") {
  for (const DType dtype : reduced::types) {
    std::vector<unsigned char> bytes(2 * 300 + 2, 0xa5);
    const Tensor a = from_blob(bytes.data() + 1, {300}, dtype);
    a.to(DType::float32);
    Tensor handle = a;
    handle.fill_(1.5);
    for (const Backend backend : {Backend::interpreted, Backend::compiled}) {
      auto step =
          compile([&] { foreach_mul_({a}, 2.0); }, {.backend = backend});
      step();
    }
    CHECK(a.to_vector() == std::vector<double>(300, 6));
    CHECK(bytes.front() == 0xa5);
    CHECK(bytes.back() == 0xa5);
  }
}

TEST_CASE("random numbers use the digits there are") {
  for (const auto& [dtype, steps] : std::vector<std::pair<DType, int>>{
           {DType::float16, 2048}, {DType::bfloat16, 256}}) {
    CAPTURE(name_of(dtype));
    Generator generator(5);
    const Tensor drawn = rand({20 * steps}, generator, dtype);
    std::set<double> seen;
    for (const double value : drawn.to_vector()) {
      CHECK(value >= 0);
      CHECK(value < 1);
      CHECK(value * steps == std::floor(value * steps));
      seen.insert(value);
    }
    CHECK(int(seen.size()) == steps);
    Tensor wide = empty({1000}, dtype);
    uniform_(wide, -3, 5, generator);
    for (const double value : wide.to_vector()) {
      CHECK(std::abs(value - 1) <= 4);
    }
  }
}

TEST_CASE("layers compute in float32 or float64") {
  Generator generator(1);
  for (const DType dtype : reduced::types) {
    const auto message = testing::message_of<Error>(
        [&] { Linear(3, 2, generator, true, dtype); });
    CHECK(message == "Linear takes float32 and float64, not " +
                         std::string(name_of(dtype)) +
                         "; convert with to(DType::float32)");
  }
  const Linear layer(3, 2, generator);
  CHECK(contains(
      testing::message_of<Error>([&] { layer(zeros({3}, DType::bfloat16)); }),
      "dtype bfloat16"));
}

TEST_CASE("files name the types as the format does") {
  const TempDir dir;
  const Tensor half = tensor({0.1, -2, infinity}, DType::float16);
  const Tensor brain = of_bits<BFloat16>({0x3f80, 0x7fc1, 0x8001});
  const Tensor wide = tensor({0.25}, DType::float64);
  write_safetensors(dir / "file", {}, {{"h", half}, {"b", brain}, {"w", wide}});
  const std::string text = read_text(dir / "file");
  // Wide elements first.
  CHECK(contains(text, R"("w":{"dtype":"F64","shape":[1],)"
                       R"("data_offsets":[0,8]})"));
  CHECK(contains(text, R"("b":{"dtype":"BF16","shape":[3],)"
                       R"("data_offsets":[8,14]})"));
  CHECK(contains(text, R"("h":{"dtype":"F16","shape":[3],)"
                       R"("data_offsets":[14,20]})"));
  const std::string data = text.substr(text.size() - 20);
  CHECK(data.substr(8, 6) == std::string("\x80\x3f\xc1\x7f\x01\x80", 6));
  const TensorFile file = read_safetensors(dir / "file");
  for (const auto& [name, tensor] :
       TensorMap{{"h", half}, {"b", brain}, {"w", wide}}) {
    const Tensor& read = file.tensors.at(name);
    CHECK(read.dtype() == tensor.dtype());
    CHECK(read.shape() == tensor.shape());
    CHECK(std::memcmp(read.raw_data(), tensor.raw_data(), tensor.nbytes()) ==
          0);
  }
}

TEST_CASE("a run in 16 bits goes on where it was saved") {
  const TempDir dir;
  for (const DType dtype : reduced::types) {
    CAPTURE(name_of(dtype));
    const auto start = make_params(mixed_shapes(8), 3, dtype);
    const auto train = [](Adam& adam, int steps) {
      auto step = compile([&] { adam.step(); });
      for (int i = 0; i < steps; ++i) step();
    };
    const AdamOptions options = {.lr = tensor(0.01, dtype), .amsgrad = true};
    auto params = copies(start);
    Adam adam(params, options);
    train(adam, 3);
    save_checkpoint(dir / "run", adam);
    train(adam, 3);

    auto others = copies(start);
    Adam other(others, options);
    load_checkpoint(dir / "run", other);
    train(other, 3);
    CHECK(bitwise_equal(params, others));
    CHECK_FALSE(bitwise_equal(params, start));

    // A file for another dtype is refused, and nothing changes.
    auto singles = make_params(mixed_shapes(8), 3);
    const auto before = copies(singles);
    Adam single(singles, options);
    CHECK(contains(testing::message_of<Error>(
                       [&] { load_checkpoint(dir / "run", single); }),
                   name_of(dtype)));
    CHECK(bitwise_equal(singles, before));
  }
}
