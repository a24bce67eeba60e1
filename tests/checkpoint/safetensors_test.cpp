#include "fusebook/checkpoint/safetensors.h"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <string>
#include <utility>
#include <vector>

#include "fusebook/support/content_hash.h"
#include "fusebook/support/error.h"
#include "support/jit_testing.h"
#include "support/testing.h"

using namespace fuse;
using jit_testing::names_in;
using jit_testing::read_text;
using jit_testing::TempDir;
using jit_testing::write_text;
using testing::contains;
using testing::message_of;

namespace {

std::string length_bytes(std::size_t length) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += char(length >> (8 * i) & 0xFF);
  return bytes;
}

std::string bytes_of(const Tensor& tensor) {
  return {static_cast<const char*>(tensor.raw_data()), tensor.nbytes()};
}

// What reading a file with this header and this many bytes of data says.
std::string error_of(const std::string& header, std::size_t data = 0) {
  const TempDir dir;
  write_text(dir / "file",
             length_bytes(header.size()) + header + std::string(data, 'x'));
  const std::string message =
      message_of<Error>([&] { read_safetensors(dir / "file"); });
  const std::string start = "cannot read '" + dir / "file" + "': ";
  CHECK(message.starts_with(start));
  return message.substr(std::min(message.size(), start.size()));
}

std::string one(const std::string& dtype, const std::string& shape,
                const std::string& offsets) {
  return R"({"a":{"dtype":")" + dtype + R"(","shape":)" + shape +
         R"(,"data_offsets":)" + offsets + "}}";
}

}  // namespace

TEST_CASE("a file is laid out as the format says") {
  const TempDir dir;
  const Tensor narrow = tensor({1, 2, 3});
  const Tensor wide = tensor({{0.5, 0.25}}, DType::float64);
  const Tensor none = zeros({0, 4});
  write_safetensors(dir / "file", {{"made by", "a test"}},
                    {{"a", narrow}, {"b", wide}, {"c", none}});

  // Wide elements first, then by name.
  std::string header =
      R"({"__metadata__":{"checksum":"0000000000000000","made by":"a test"})"
      R"(,"b":{"dtype":"F64","shape":[2],"data_offsets":[0,16]})"
      R"(,"a":{"dtype":"F32","shape":[3],"data_offsets":[16,28]})"
      R"(,"c":{"dtype":"F32","shape":[0,4],"data_offsets":[28,28]}})";
  header.append((8 - header.size() % 8) % 8, ' ');
  std::string wanted = length_bytes(header.size()) + header;
  std::uint64_t hash = content_hash(wanted);
  for (const Tensor& tensor : {wide, narrow, none}) {
    hash = content_hash(bytes_of(tensor), hash);
    wanted += bytes_of(tensor);
  }
  wanted.replace(wanted.find("0000000000000000"), 16, hex_digits(hash));
  CHECK(read_text(dir / "file") == wanted);
  CHECK(names_in(dir.path()).size() == 1);

  const TensorFile file = read_safetensors(dir / "file");
  CHECK(file.metadata == Metadata{{"made by", "a test"}});
  REQUIRE(file.tensors.size() == 3);
  CHECK(bitwise_equal(file.tensors.at("a"), narrow));
  CHECK(bitwise_equal(file.tensors.at("b"), wide));
  CHECK(bitwise_equal(file.tensors.at("c"), none));
}

TEST_CASE("blanks after colons and commas change nothing") {
  const TempDir dir;
  const std::string header =
      R"({"__metadata__": {"a": "0000000000000000", "checksum": )"
      R"("0000000000000000"}, "b": {"shape": [1], "dtype": "F32", )"
      R"("data_offsets": [0,4]}})";
  std::string bytes = length_bytes(header.size()) + header;
  const Tensor number = tensor({1.5});
  const std::uint64_t hash =
      content_hash(bytes_of(number), content_hash(bytes));
  bytes.replace(bytes.rfind("0000000000000000"), 16, hex_digits(hash));
  write_text(dir / "file", bytes + bytes_of(number));
  const TensorFile file = read_safetensors(dir / "file");
  CHECK(file.metadata == Metadata{{"a", "0000000000000000"}});
  CHECK(bitwise_equal(file.tensors.at("b"), number));
}

TEST_CASE("an empty file of tensors, and awkward shapes") {
  const TempDir dir;
  write_safetensors(dir / "file", {}, {});
  CHECK(read_safetensors(dir / "file").tensors.empty());
  TensorMap tensors;
  for (const Shape& shape :
       {Shape{}, {0}, {1, 1, 1, 1, 1, 1}, {3, 0, 2}, {5}}) {
    for (const DType dtype : {DType::float32, DType::float64}) {
      tensors["t" + std::to_string(tensors.size())] = full(shape, 2.5, dtype);
    }
  }
  write_safetensors(dir / "file", {}, tensors);
  const TensorFile file = read_safetensors(dir / "file");
  REQUIRE(file.tensors.size() == tensors.size());
  for (const auto& [name, tensor] : tensors) {
    CHECK(bitwise_equal(file.tensors.at(name), tensor));
  }
}

TEST_CASE("headers that describe no file are refused") {
  CHECK(contains(error_of("{}"), "has no checksum"));
  CHECK(contains(error_of("{}", 1), "0 bytes, but the file holds 1"));
  CHECK(contains(error_of("[]"), "expected an object"));
  CHECK(contains(error_of("{} x"), "at byte 4"));
  CHECK(contains(error_of(one("I32", "[1]", "[0,4]"), 4), "type I32"));
  CHECK(contains(error_of(one("F32", "[2]", "[0,4]"), 4),
                 "does not match its shape"));
  CHECK(contains(error_of(one("F32", "[1]", "[4,0]"), 4),
                 "does not match its shape"));
  CHECK(contains(error_of(one("F32", "[1]", "[4,8]"), 8), "leave a gap"));
  CHECK(contains(error_of(one("F32", "[1]", "[0,4]"), 8), "truncated"));
  CHECK(contains(error_of(one("F32", "[1]", "[0,4]"), 3), "truncated"));
  CHECK(contains(error_of(one("F32", "[1]", "[0,4,4]"), 4), "two numbers"));
  CHECK(contains(error_of(one("F32", "[-1]", "[0,4]"), 4), "integer"));
  // Their product would be 4 in 64 bits, and so would one with the sign gone.
  const std::string huge = "[4611686018427387905,4]";
  CHECK(contains(error_of(one("F32", huge, "[0,16]"), 16),
                 "does not match its shape"));
  CHECK(contains(error_of(one("F32", "[4294967296,4294967296]", "[1,0]"), 0),
                 "does not match its shape"));
  CHECK(contains(error_of(one("F32", "[0,4294967296,4294967296]", "[0,0]")),
                 "has no checksum"));
  CHECK(contains(error_of(R"({"a":{"dtype":"F32","shape":[]}})"),
                 "dtype, shape and data_offsets"));
  CHECK(contains(error_of(R"({"a":{"dtype":"F32","kind":1}})"), "\"kind\""));
  CHECK(contains(error_of(R"({"__metadata__":{"a":1}})"),
                 "\"__metadata__\": expected a string"));
  CHECK(contains(error_of(R"({"__metadata__":7})"), "expected an object"));
  CHECK(contains(error_of(R"({"a":[]})"), "\"a\": expected an object"));
  CHECK(contains(error_of(R"({"a":{"dtype":"F32","shape":{}}})"), "a list"));
  CHECK(contains(error_of(R"({"a":{"dtype":4}})"), "expected a string"));
  for (const char* const number :
       {"-0", "1.0", "1e0", "9223372036854775808", "\"1\"", "null", "[1]"}) {
    CHECK(contains(
        error_of(one("F32", std::string("[") + number + "]", "[0,4]"), 4),
        number == std::string("[1]") ? "nested" : "integer"));
  }
  CHECK(
      contains(error_of(R"({"__metadata__":{"checksum":"00"}})"), "checksum"));
  CHECK(contains(error_of(R"({"__metadata__":{},"__metadata__":{}})"),
                 "appears twice"));
  const std::string overlap = R"({"a":{"dtype":"F32","shape":[2],)"
                              R"("data_offsets":[0,8]},"b":{"dtype":"F32",)"
                              R"("shape":[1],"data_offsets":[4,8]}})";
  CHECK(contains(error_of(overlap, 8), "overlap"));
}

TEST_CASE("a length beyond the file or the limit is no reason to read it") {
  const TempDir dir;
  for (const std::size_t length :
       {std::size_t(9), std::size_t(100'000'001), std::size_t(-1)}) {
    write_text(dir / "file", length_bytes(length) + "{}      ");
    // A file with a hole may claim any size.
    if (length == 100'000'001) {
      std::filesystem::resize_file(dir / "file", 200'000'000);
    }
    CHECK(contains(message_of<Error>([&] { read_safetensors(dir / "file"); }),
                   "a length of " + std::to_string(length) + " bytes"));
  }
}

TEST_CASE("names that cannot be are refused before anything is written") {
  const TempDir dir;
  const Tensor one_number = zeros({1});
  for (const TensorMap& tensors : {TensorMap{{"__metadata__", one_number}},
                                   TensorMap{{"\xff", one_number}}}) {
    CHECK_THROWS_AS(write_safetensors(dir / "file", {}, tensors), Error);
  }
  CHECK_THROWS_AS(write_safetensors(dir / "file", {{"a", "\xff"}}, {}), Error);
  CHECK_THROWS_AS(write_safetensors(dir / "missing" + "/file", {}, {}),
                  UsageError);
  CHECK_THROWS_AS(write_safetensors(dir.path(), {}, {}), UsageError);
  CHECK(names_in(dir.path()).empty());
}
