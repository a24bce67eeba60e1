#include "fusebook/cuda_launch/gpu_graph.h"

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

#include "fusebook/cuda_launch/gpu_event.h"
#include "fusebook/cuda_launch/gpu_kernel.h"
#include "support/gpu_testing.h"

using namespace testing;
using fuse::Error;
using fuse::GpuBlock;
using fuse::GpuCapture;
using fuse::GpuGraph;
using fuse::GpuKernel;
using fuse::GpuLaunch;
using fuse::make_gpu_kernel;

namespace {

struct Step {
  Step() {
    gpus.driver.parameter_sizes = {sizeof(GpuLaunch), sizeof(double)};
    gpus.driver.kernel = [this](const CudaStandIn::Launch& launch) {
      const auto given = read_as<GpuLaunch>(launch.parameters[0]);
      numels.push_back(given.chunks[0].end);
      addresses.push_back(given.table.pointers[0]);
      scales.push_back(read_as<double>(launch.parameters[1]));
      if (given.table.columns != nullptr) {
        columns.push_back(given.table.columns[1]);
      }
    };
    gpu = gpus.platform.gpu();
    kernel = make_gpu_kernel("a kernel", gpu);
  }
  std::unique_ptr<GpuGraph> capture(const SampleTable& sample) {
    GpuCapture capturing(gpu);
    kernel->launch(sample.table);
    return capturing.finish();
  }

  GpuFixture gpus;
  std::shared_ptr<fuse::Gpu> gpu;
  std::shared_ptr<GpuKernel> kernel;
  std::vector<fuse::i64> numels;
  std::vector<const void*> addresses;
  std::vector<double> scales;
  std::vector<double> columns;
};

}  // namespace

TEST_CASE("a captured step is replayed by one call") {
  Step step;
  const SampleTable sample({11}, 1, 0.5);
  step.kernel->launch(sample.table);
  const auto graph = step.capture(sample);
  CHECK(step.numels.size() == 1);  // capturing runs nothing
  const std::size_t before = step.gpus.driver.calls.size();
  for (int i = 0; i < 3; ++i) graph->launch();
  CHECK(step.gpus.driver.calls.size() == before + 9);
  CHECK(step.gpus.driver.count("cuGraphLaunch") == 3);
  CHECK(step.numels == std::vector<fuse::i64>(4, 11));
  CHECK(step.scales == std::vector<double>(4, 0.5));
  CHECK(graph->launches() == 3);
  step.kernel->launch(sample.table);
  CHECK(step.numels.size() == 5);
}

TEST_CASE("a step that was never run cannot be captured") {
  Step step;
  const SampleTable sample({11, 12}, 1, 0.5);
  const std::size_t bytes = expected_table(sample.table).size();
  GpuCapture capturing(step.gpu);
  const std::string message =
      message_of<Error>([&] { step.kernel->launch(sample.table); });
  CHECK(contains(message,
                 "cuda:0: a step is being captured and needs the addresses of "
                 "its 2 tensors on the device (an upload of " +
                     std::to_string(bytes) + " bytes)"));
  CHECK(contains(message, "run the step once before capturing it"));
  // Asking again changes nothing.
  CHECK(message ==
        message_of<Error>([&] { step.kernel->launch(sample.table); }));
}

TEST_CASE("a scalar that moved is named") {
  Step step;
  SampleTable sample({11}, 1, 0.5);
  step.kernel->launch(sample.table);
  sample.bind(0.25);
  GpuCapture capturing(step.gpu);
  const std::string message =
      message_of<Error>([&] { step.kernel->launch(sample.table); });
  CHECK(contains(
      message,
      "argument 0, whose value has changed from 0.5 to 0.25, which a"));
}

TEST_CASE("columns that moved are named") {
  Step step;
  SampleTable sample({11}, 2, 0.5, {1, 2});
  step.kernel->launch(sample.table);
  sample.bind(0.5, {1, 3});
  GpuCapture capturing(step.gpu);
  const std::string message =
      message_of<Error>([&] { step.kernel->launch(sample.table); });
  CHECK(contains(message, "number 2, whose value has changed from 2 to 3"));
}

TEST_CASE("what a replay could not repeat is refused while capturing") {
  Step step;
  const GpuBlock block(step.gpu, 64);
  fuse::GpuEvent event(step.gpu);
  {
    GpuCapture capturing(step.gpu);
    char bytes[64] = {};
    const auto refused = [&](auto action) {
      const std::string message = message_of<Error>(action);
      CHECK(contains(message, "a step is being captured and needs"));
    };
    refused([&] { step.gpu->copy_to_device(block.data(), bytes, 64); });
    refused([&] { step.gpu->copy_to_host(bytes, block.data(), 64); });
    refused([&] { step.gpu->synchronize(); });
    refused([&] { const GpuBlock more(step.gpu, 64); });
    refused([&] { make_gpu_kernel("another kernel", step.gpu); });
    refused([&] { event.record(); });
    step.gpu->forget_modules();
    step.gpu->memory().empty_cache();
    // What stays on the device is captured.
    step.gpu->fill_bytes(block.data(), 7, 64);
    const auto graph = capturing.finish();
    graph->launch();
    step.gpu->copy_to_host(bytes, block.data(), 64);
    CHECK(bytes[63] == 7);
  }
  CHECK(step.gpus.driver.violations.empty());
}

TEST_CASE("one step is captured at a time") {
  Step step;
  GpuCapture capturing(step.gpu);
  CHECK(contains(message_of<Error>([&] { GpuCapture second(step.gpu); }),
                 "another step is already being captured"));
  CHECK_NOTHROW(capturing.finish());
  CHECK_NOTHROW(GpuCapture(step.gpu).finish());
}

TEST_CASE("a capture that is left leaves nothing behind") {
  Step step;
  const SampleTable sample({11}, 1, 0.5);
  step.kernel->launch(sample.table);
  {
    GpuCapture capturing(step.gpu);
    step.kernel->launch(sample.table);
  }
  CHECK_FALSE(step.gpu->context().is_capturing());
  step.kernel->launch(sample.table);
  CHECK(step.numels.size() == 2);
  step.kernel = nullptr;
  step.gpu->forget_modules();
  CHECK(step.gpus.driver.count("cuGraphDestroy") == 1);
  CHECK(step.gpus.driver.count("cuModuleUnload") == 1);
  CHECK(step.gpu->memory().statistics().bytes_in_use == 0);
}

TEST_CASE("what is written after a replay does not overtake it") {
  Step step;
  const GpuBlock rate(step.gpu, sizeof(double));
  const GpuBlock seen(step.gpu, sizeof(double));
  GpuCapture capturing(step.gpu);
  step.gpu->copy_on_device(seen.data(), rate.data(), sizeof(double));
  const auto graph = capturing.finish();
  const auto assign = [&](double value) {
    step.gpu->copy_to_device(rate.data(), &value, sizeof(value));
  };
  const auto read = [&] {
    double value = 0;
    step.gpu->copy_to_host(&value, seen.data(), sizeof(value));
    return value;
  };
  step.gpus.driver.deferred = true;
  assign(0.5);
  graph->launch();
  assign(0.25);
  CHECK(step.gpus.driver.pending() > 0);  // nothing has waited
  CHECK(read() == 0.5);
  graph->launch();
  CHECK(read() == 0.25);
}

TEST_CASE("a graph keeps its table while others come and go") {
  Step step;
  const SampleTable first({11}, 1, 0.5);
  step.kernel->launch(first.table);
  const auto graph = step.capture(first);
  for (int i = 0; i < 20; ++i) {
    const SampleTable other({100 + i}, 1, 2);
    step.kernel->launch(other.table);
  }
  step.numels.clear();
  step.scales.clear();
  graph->launch();
  CHECK(step.numels == std::vector<fuse::i64>{11});
  CHECK(step.scales == std::vector<double>{0.5});
}

TEST_CASE("a graph keeps its addresses while the tensors move") {
  Step step;
  SampleTable sample({11}, 1, 0.5);
  step.kernel->launch(sample.table);
  const auto graph = step.capture(sample);
  const void* const captured = sample.table.pointers()[0];
  sample.move(0);
  CHECK(sample.bind(0.5));
  step.kernel->launch(sample.table);
  CHECK(step.addresses.back() == sample.table.pointers()[0]);
  CHECK(step.addresses.back() != captured);
  graph->launch();
  CHECK(step.addresses.back() == captured);
}

TEST_CASE("a graph keeps its columns") {
  Step step;
  SampleTable sample({11}, 2, 0.5, {1, 2});
  step.kernel->launch(sample.table);
  const auto graph = step.capture(sample);
  sample.bind(0.5, {8, 9});
  step.kernel->launch(sample.table);
  graph->launch();
  CHECK(step.columns == std::vector<double>{1, 8, 1});
  step.kernel->launch(sample.table);
  CHECK(step.columns.back() == 8);
}

TEST_CASE("a graph keeps its kernel, and gives all back at its end") {
  Step step;
  const SampleTable sample({11}, 1, 0.5);
  step.kernel->launch(sample.table);
  auto graph = step.capture(sample);
  step.kernel = nullptr;
  step.gpu->forget_modules();
  step.gpus.driver.deferred = true;
  graph->launch();
  CHECK(step.numels.size() == 1);
  graph = nullptr;  // does not wait for the replay
  CHECK(step.numels.size() == 1);
  step.gpu->forget_modules();  // does
  CHECK(step.numels.size() == 2);
  CHECK(step.gpus.driver.violations.empty());
  CHECK(step.gpu->memory().statistics().bytes_in_use == 0);
  step.gpu = nullptr;
  CHECK(step.gpus.driver.alive() == "");
}
