// Whatever call of the driver fails, and whenever: one Error that names it,
// nothing left behind, and the next attempt works.
#include <doctest/doctest.h>

#include <cstring>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "fusebook/cuda_launch/gpu_event.h"
#include "fusebook/cuda_launch/gpu_graph.h"
#include "fusebook/cuda_launch/gpu_kernel.h"
#include "support/gpu_testing.h"

using namespace testing;
using fuse::Error;
using fuse::Gpu;
using fuse::GpuBlock;
using fuse::GpuLaunch;

namespace {

// What stays from one attempt to the next, as in a program that goes on after
// an error.
struct Held {
  std::shared_ptr<Gpu> gpu;
  std::shared_ptr<fuse::GpuKernel> kernel;
};

// A bit of everything. Returns what came back from the device.
std::vector<char> work(GpuFixture& gpus, Held& held) {
  held.gpu = gpus.platform.gpu();
  const auto& gpu = held.gpu;
  held.kernel = fuse::make_gpu_kernel("a kernel", gpu);
  const GpuBlock block(gpu, 300000);
  const GpuBlock copy(gpu, 100000);
  fuse::GpuEvent begin(gpu);
  fuse::GpuEvent end(gpu);
  std::vector<char> bytes(100000, 3);
  begin.record();
  gpu->copy_to_device(block.data(), bytes.data(), 100);
  gpu->copy_to_device(block.data(), bytes.data(), bytes.size());
  SampleTable sample({10, 5000}, 3, 0.5, {1, 2});
  for (int i = 0; i < 20; ++i) {
    sample.bind(i, {1, double(i)});
    held.kernel->launch(sample.table);
  }
  gpu->fill_bytes(block.data(), 9, 50);
  gpu->copy_on_device(copy.data(), block.data(), bytes.size());
  std::unique_ptr<fuse::GpuGraph> graph;
  {
    fuse::GpuCapture capture(gpu);
    held.kernel->launch(sample.table);
    graph = capture.finish();
  }
  graph->launch();
  end.record();
  static_cast<void>(end.is_over());
  const double milliseconds = end.milliseconds_since(begin);
  CHECK(milliseconds > 0);
  gpu->copy_to_host(bytes.data(), copy.data(), bytes.size());
  gpu->memory().empty_cache();
  return bytes;
}

std::vector<char> expected_bytes() {
  std::vector<char> bytes(100000, 3);
  std::memset(bytes.data(), 9, 50);
  return bytes;
}

std::string attempt(GpuFixture& gpus, Held& held) {
  return message_of<Error>([&] {
    const std::vector<char> bytes = work(gpus, held);
    CHECK(bytes == expected_bytes());
  });
}

void prepare(GpuFixture& gpus, bool deferred) {
  gpus.driver.deferred = deferred;
  gpus.driver.parameter_sizes = {sizeof(GpuLaunch), sizeof(double)};
}

// Fails the n-th call, tries again, and lets go of everything. Returns the name
// of the call that failed; nothing when there are not so many.
std::optional<std::string> fail_and_go_on(int n, int code, bool deferred) {
  GpuFixture gpus;
  prepare(gpus, deferred);
  Held held;
  gpus.driver.fail_nth(n, code);
  const std::string message = attempt(gpus, held);
  if (!gpus.driver.has_failed()) {
    CHECK(message == "no error");
    return std::nullopt;
  }
  const std::string name = gpus.driver.failed_call;
  INFO("call " << n << ": " << name << ": " << message);
  const bool silent = message == "no error";
  // Only what gives something back, or turns to another context, may pass.
  const std::set<std::string> may_pass = {
      "cuMemFree",        "cuMemFreeHost",      "cuEventDestroy",
      "cuGraphDestroy",   "cuGraphExecDestroy", "cuCtxPopCurrent",
      "cuCtxPushCurrent", "cuStreamSynchronize"};
  // A full device is asked again once its cache is empty.
  const bool retried =
      name == "cuMemAlloc" && code == fuse::cuda::out_of_memory;
  if (silent) {
    CHECK((may_pass.contains(name) || retried));
  } else {
    // A lost context that nobody was told of shows at the next call.
    CHECK((contains(message, name) ||
           (fuse::is_sticky(code) && may_pass.contains(name))));
    CHECK(contains(message, "code " + std::to_string(code)));
    CHECK(message.find('\n') == std::string::npos);
  }
  const bool lost = held.gpu != nullptr && held.gpu->context().is_lost();
  CHECK(lost == (fuse::is_sticky(code) && !silent && held.gpu != nullptr));
  if (lost) {
    const std::string again = attempt(gpus, held);
    CHECK(contains(again, "cuda:0 can no longer be used"));
  } else if (!fuse::is_sticky(code)) {
    CHECK(attempt(gpus, held) == "no error");
  }
  held = {};
  CHECK(gpus.driver.alive() == "");
  CHECK(gpus.driver.violations.empty());
  for (const std::string& violation : gpus.driver.violations) {
    MESSAGE(violation);
  }
  return name;
}

}  // namespace

TEST_CASE("without a failure everything is given back") {
  GpuFixture gpus;
  prepare(gpus, false);
  {
    Held held;
    CHECK(attempt(gpus, held) == "no error");
    CHECK(attempt(gpus, held) == "no error");
  }
  CHECK(gpus.driver.alive() == "");
  CHECK(gpus.driver.violations.empty());
}

TEST_CASE("a failure of any call is one error, and the next attempt works") {
  std::set<std::string> failed;
  for (const bool deferred : {false, true}) {
    int n = 1;
    while (const auto name = fail_and_go_on(n, 999, deferred)) {
      failed.insert(*name);
      ++n;
    }
    CHECK(n > 150);
  }
  // All calls of the table that the library makes at present.
  CHECK(failed.size() >= 35);
}

TEST_CASE("a lost context is one error at any call, then a short one") {
  for (const bool deferred : {false, true}) {
    int n = 1;
    while (fail_and_go_on(n, fuse::cuda::illegal_address, deferred)) ++n;
    CHECK(n > 150);
  }
}

TEST_CASE("memory that is short at any moment is one error at most") {
  int n = 1;
  int short_of_memory = 0;
  while (const auto name = fail_and_go_on(n, 2, false)) {
    short_of_memory += int(*name == "cuMemAlloc");
    ++n;
  }
  CHECK(short_of_memory > 2);
}

TEST_CASE("no copy still uses the caller's memory once it has failed") {
  std::vector<char> bytes(100000, 3);
  std::set<std::string> failed;
  for (const bool to_device : {true, false}) {
    for (int n = 1;; ++n) {
      GpuFixture gpus;
      prepare(gpus, true);
      const auto gpu = gpus.platform.gpu();
      const GpuBlock block(gpu, bytes.size());
      gpus.driver.fail_nth(n, 999);
      const std::string message = message_of<Error>([&] {
        to_device
            ? gpu->copy_to_device(block.data(), bytes.data(), bytes.size())
            : gpu->copy_to_host(bytes.data(), block.data(), bytes.size());
      });
      if (!gpus.driver.has_failed()) break;
      INFO(gpus.driver.failed_call << ": " << message);
      CHECK(gpus.driver.pending() == 0);
      failed.insert(gpus.driver.failed_call);
    }
  }
  CHECK(failed == std::set<std::string>{"cuCtxPushCurrent", "cuCtxPopCurrent",
                                        "cuMemcpyHtoDAsync",
                                        "cuMemcpyDtoHAsync",
                                        "cuStreamSynchronize"});
}

TEST_CASE("a device that cannot be started can be tried again") {
  GpuFixture gpus;
  for (const char* const name :
       {"cuDevicePrimaryCtxRetain", "cuStreamCreate"}) {
    gpus.driver.fail_always(name, 999);
    CHECK(contains(message_of<Error>([&] { gpus.platform.gpu(); }),
                   std::string("cuda:0: starting the device: ") + name));
    CHECK(gpus.driver.alive() == "");
    gpus.driver.fail_always(name, 0);
    CHECK(gpus.platform.gpu() != nullptr);
    CHECK(gpus.driver.alive() == "");
  }
  gpus.driver.fail_always("cuDevicePrimaryCtxRetain", 46);
  CHECK(contains(message_of<Error>([&] { gpus.platform.gpu(); }),
                 "another process has exclusive use of the device"));
}
