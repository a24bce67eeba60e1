#include "fusebook/harness/kernel_hashes.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "fusebook/fusebook.h"

using namespace fuse;
namespace fs = std::filesystem;

namespace {

using Hashes = std::set<std::string>;

// The strings of the array "kernels", which holds nothing else.
Hashes hashes_in(const std::string& record) {
  const std::size_t begin = record.find("\"kernels\": [");
  REQUIRE(begin != std::string::npos);
  const std::size_t end = record.find(']', begin);
  Hashes found;
  for (std::size_t at = record.find('[', begin);;) {
    at = record.find('"', at + 1);
    if (at >= end) return found;
    const std::size_t close = record.find('"', at + 1);
    found.insert(record.substr(at + 1, close - at - 1));
    at = close;
  }
}

// What the record of a recipe with this body has.
Hashes kernels_of(const std::string& device,
                  const std::function<void()>& body) {
  std::string folder = (fs::temp_directory_path() / "fuseXXXXXX").string();
  REQUIRE(mkdtemp(folder.data()) != nullptr);
  const std::string path = folder + "/record.json";
  const std::vector<const char*> argv{"demo", "--device", device.c_str(),
                                      "--record", path.c_str()};
  const int code = run_recipe("demo", int(argv.size()), argv.data(),
                              [&](const Options&) { body(); });
  REQUIRE(code == 0);
  std::ifstream file(path);
  const std::string record{std::istreambuf_iterator<char>(file), {}};
  fs::remove_all(folder);
  return hashes_in(record);
}

void steps(const std::vector<Shape>& shapes, AdamOptions options, int count) {
  std::vector<Tensor> params;
  for (const Shape& shape : shapes) {
    params.push_back(full(shape, 1));
    params.back().set_grad(full(shape, 1));
  }
  Adam adam(params, std::move(options));
  auto fn = compile([&] { adam.step(); });
  for (int i = 0; i < count; ++i) fn();
}

}  // namespace

TEST_CASE("a kernel is the same on the CPU and on a GPU, for any sizes") {
  const Hashes here = kernels_of("cpu", [] { steps({{3}}, {.lr = 0.01}, 1); });
  CHECK(here.size() == 1);
  CHECK(here.begin()->size() == 16);
  const Hashes there = kernels_of("cuda-sim", [] {
    // Elsewhere in the file, on other tensors, and more than once.
    steps({{7, 5}, {}, {0}}, {.lr = 0.01}, 3);
  });
  CHECK(here == there);
}

TEST_CASE("another kernel has another hash, and every one is recorded") {
  const Hashes both = kernels_of("cpu", [] {
    steps({{3}}, {.lr = 0.01}, 1);
    steps({{3}}, {.lr = 0.02}, 1);
    steps({{3}}, {.lr = 0.01}, 1);
  });
  CHECK(both.size() == 2);
  const Hashes one = kernels_of("cpu", [] { steps({{3}}, {.lr = 0.02}, 1); });
  CHECK(one.size() == 1);
  CHECK(both.contains(*one.begin()));
}

TEST_CASE("eager operations are no kernels of a recipe") {
  for (const char* device : {"cpu", "cuda-sim"}) {
    CHECK(kernels_of(device, [] {
            foreach_mul_(std::vector{full({3}, 1)}, 2);
          }).empty());
  }
}

TEST_CASE("kernels need no record") { steps({{3}}, {}, 1); }
