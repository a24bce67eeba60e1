// What torch has and Fusebook has not is an error that says so.
#include "fusebook/optim/unsupported.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <fstream>
#include <string>

#include "fusebook/checkpoint/safetensors.h"
#include "fusebook/jit/scratch_directory.h"
#include "fusebook/support/error.h"
#include "support/testing.h"

using namespace fuse;
using testing::contains;
using testing::message_of;

namespace {

Tensor param() { return tensor({1, 2}); }

/// What reading a file says that holds one tensor of that type, of eight bytes.
std::string refusal_of(const std::string& type) {
  const ScratchDirectory folder = make_temporary_directory();
  const std::string path = folder.path() + "/file";
  const std::string header =
      R"({"w":{"dtype":")" + type + R"(","shape":[1],"data_offsets":[0,8]}})";
  std::string bytes;
  for (std::size_t i = 0, n = header.size(); i < 8; ++i, n >>= 8) {
    bytes += char(n & 0xFFU);
  }
  std::ofstream(path, std::ios::binary) << bytes << header << "12345678";
  return message_of<Error>([&] { read_safetensors(path); });
}

}  // namespace

TEST_CASE("optimizers") {
  const std::string lbfgs =
      message_of<Error>([] { LBFGS({param()}, {.lr = 0.5, .max_iter = 4}); });
  CHECK(lbfgs.starts_with("LBFGS is not supported: "));
  CHECK(contains(lbfgs, "use Adam, SGD"));
  const std::string sparse = message_of<Error>([] { SparseAdam({param()}); });
  CHECK(sparse.starts_with("SparseAdam is not supported: "));
  CHECK(contains(sparse, "use Adam"));
}

TEST_CASE("complex tensors in a file") {
  for (const char* const type : {"C64", "C128"}) {
    CAPTURE(type);
    const std::string message = refusal_of(type);
    CHECK(
        contains(message, std::string("a tensor of type ") + type +
                              ": complex numbers are not supported; "
                              "Fusebook supports F32, F64, F16, BF16 and I16"));
  }
  const std::string whole = refusal_of("I64");
  CHECK(contains(whole, "a tensor of type I64: Fusebook supports F32, "));
  CHECK(!contains(whole, "complex"));
}
