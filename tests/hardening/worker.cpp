// The program whose life the hardening tests make hard. What it computes it
// checks itself: exit code 0 means that every result was right.
//
//   hardening_worker step                two compiled steps of Adam
//   hardening_worker rounds N KEYS SEED  N times one of KEYS kernels, each time
//                                        as a process that has never seen it
//   hardening_worker clear               empties the cache until it is killed
//   hardening_worker fault KIND          runs a kernel that is wrong: beyond,
//                                        overflow, race; or rest, a right one on
//                                        memory that ends too soon
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <exception>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "fusebook/fusebook.h"
#include "fusebook/jit/disk_cache.h"
#include "fusebook/jit/jit.h"
#include "fusebook/jit/loaded_libraries.h"
#include "support/jit_testing.h"
#include "support/testing.h"

namespace {

using fuse::Adam;
using fuse::Tensor;

// Parameters with gradients, the same in every process.
std::vector<Tensor> make_params() {
  testing::Random random(5);
  std::vector<Tensor> params;
  for (const std::int64_t size : {1, 7, 64, 1000, 0, 333}) {
    std::vector<double> values(std::size_t(size), 0.0);
    for (double& value : values) value = random.uniform(-2, 2);
    params.push_back(fuse::tensor(values));
    for (double& value : values) value = random.uniform(-1, 1);
    params.back().set_grad(fuse::tensor(values));
  }
  return params;
}

// Eager steps need no compiler: they say what is right.
int run_step() {
  const std::vector<Tensor> expected = make_params();
  const std::vector<Tensor> params = make_params();
  Adam eager(expected, {.lr = 0.01});
  Adam adam(params, {.lr = 0.01});
  auto step = fuse::compile([&] { adam.step(); });
  for (int i = 0; i < 2; ++i) {
    eager.step();
    step();
  }
  const bool right = fuse::bitwise_equal(expected, params) &&
                     !fuse::bitwise_equal(params, make_params());
  const auto counters = fuse::jit_counters();
  std::printf("%s compiler_runs=%ld disk_hits=%ld\n", right ? "right" : "WRONG",
              counters.compiler_runs, counters.disk_hits);
  return right ? 0 : 1;
}

int run_rounds(int rounds, int keys, unsigned long seed) {
  testing::Random random(seed);
  int wrong = 0;
  for (int round = 0; round < rounds; ++round) {
    const int key = random.below(keys);
    fuse::forget_libraries();
    const auto library =
        fuse::build_library(jit_testing::answer_source(1000 + key));
    const auto answer = reinterpret_cast<int (*)()>(library->symbol("answer"));
    if (answer() != 1000 + key) ++wrong;
  }
  const auto counters = fuse::jit_counters();
  std::printf("wrong=%d compiler_runs=%ld disk_hits=%ld\n", wrong,
              counters.compiler_runs, counters.disk_hits);
  return wrong == 0 ? 0 : 1;
}

int run_clear() {
  testing::Random random(6);
  for (;;) {
    std::printf("%ld\n", fuse::clear_disk_cache());
    std::fflush(stdout);
    usleep(useconds_t(random.below(200000)));
  }
}

// Kernels with faults that only a sanitizer in their own code can see.
int run_fault(const std::string& kind) {
  const auto library = fuse::build_library(
      "#define EXPORT extern \"C\" __attribute__((visibility(\"default\")))\n"
      "EXPORT void beyond(int* x) { x[4] = 1; }\n"
      "EXPORT void overflow(int* x) { x[0] = x[1] + x[2]; }\n"
      "EXPORT void race(int* x) { for (int i = 0; i < 1000; ++i) ++x[0]; }\n");
  const auto kernel =
      reinterpret_cast<void (*)(int*)>(library->symbol(kind.c_str()));
  const std::unique_ptr<int[]> x(new int[4]{0, 1, 2147483647, 0});
  std::thread other([&] {
    if (kind == "race") kernel(x.get());
  });
  kernel(x.get());
  other.join();
  std::printf("nobody noticed\n");
  return 0;
}

// Five elements where there is room for four: what is left of a tensor is less than
// a register holds.
int run_rest() {
  const std::unique_ptr<std::uint16_t[]> x(new std::uint16_t[4]{});
  const fuse::TensorList list = {
      fuse::from_blob(x.get(), {5}, fuse::DType::bfloat16)};
  auto add = fuse::compile([&] { fuse::foreach_add_(list, 1); });
  add();
  std::printf("nobody noticed\n");
  return 0;
}

int run(const std::vector<std::string>& words) {
  const std::string command = words.empty() ? "" : words[0];
  if (command == "step") return run_step();
  if (command == "clear") return run_clear();
  if (command == "fault" && words.size() == 2) {
    return words[1] == "rest" ? run_rest() : run_fault(words[1]);
  }
  if (command == "rounds" && words.size() == 4) {
    return run_rounds(std::stoi(words[1]), std::stoi(words[2]),
                      std::stoul(words[3]));
  }
  std::fprintf(stderr, "usage: see worker.cpp\n");
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 3;
  }
}
