// A hash of parameters: no other process is needed.
#include "fusebook/tensor/tensor_hash.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "fusebook/support/error.h"

using namespace fuse;

namespace {

Tensor numbers(std::int64_t count) {
  Tensor all = empty({count});
  for (std::int64_t i = 0; i < count; ++i) all.data<float>()[i] = float(i);
  return all;
}

}  // namespace

TEST_CASE("equal bits are equal digits, and any other bit is not") {
  const std::vector<Tensor> tensors = {numbers(1000), tensor({1.0, -0.0})};
  const std::string hash = hash_of_bits(tensors);
  CHECK(hash.size() == 16);
  CHECK(hash.find_first_not_of("0123456789abcdef") == std::string::npos);
  CHECK(hash_of_bits({tensors[0].clone(), tensors[1].clone()}) == hash);
  CHECK(hash_of_bits({tensors[0], tensor({1.0, 0.0})}) != hash);
  CHECK(hash_of_bits({tensors[1], tensors[0]}) != hash);
  Tensor moved = tensors[0].clone();
  moved.data<float>()[999] = std::nextafter(999.0F, 0.0F);
  CHECK(hash_of_bits({moved, tensors[1]}) != hash);
}

TEST_CASE("elements count, not how they lie in memory") {
  const Tensor matrix = numbers(12).view({3, 4});
  const Tensor turned = matrix.t().contiguous().t();
  CHECK(!turned.is_contiguous());
  CHECK(hash_of_bits({turned}) == hash_of_bits({matrix}));
  CHECK(hash_of_bits({matrix.to(DType::bfloat16)}) != hash_of_bits({matrix}));
}

TEST_CASE("a tensor without elements is one; an undefined one has no hash") {
  CHECK(hash_of_bits({}) != hash_of_bits({zeros({0})}));
  CHECK_THROWS_AS(hash_of_bits({Tensor()}), Error);
}
