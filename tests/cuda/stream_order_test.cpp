#include "fusebook/cuda/stream_order.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "support/gpu_testing.h"

using namespace testing;
using fuse::Error;
using fuse::StreamOrder;

namespace {

using Calls = std::vector<CudaStandIn::Call>;

fuse::cuda::Stream stream_at(std::uint64_t address) {
  return reinterpret_cast<fuse::cuda::Stream>(address);
}

// The calls that put something on a stream.
Calls calls_on_streams(const CudaStandIn& driver) {
  Calls found;
  for (const CudaStandIn::Call& call : driver.calls) {
    if (call.name == "cuEventRecord" || call.name == "cuStreamWaitEvent") {
      found.push_back(call);
    }
  }
  return found;
}

}  // namespace

TEST_CASE("one stream waits for what is on the other") {
  GpuFixture gpus;
  const auto gpu = gpus.platform.gpu();
  const auto ours = reinterpret_cast<std::uint64_t>(gpu->context().stream());
  for (const std::uint64_t theirs : {std::uint64_t(0), std::uint64_t(0xabc0)}) {
    gpus.driver.calls.clear();
    gpu->order().run_after(stream_at(theirs));
    gpu->order().run_before(stream_at(theirs));
    const Calls calls = calls_on_streams(gpus.driver);
    REQUIRE(calls.size() == 4);
    CHECK(calls[0].name == "cuEventRecord");
    CHECK(calls[0].arguments[1] == theirs);
    CHECK(calls[1].name == "cuStreamWaitEvent");
    CHECK(calls[1].arguments[0] == ours);
    CHECK(calls[1].arguments[1] == calls[0].arguments[0]);
    CHECK(calls[2].name == "cuEventRecord");
    CHECK(calls[2].arguments[1] == ours);
    CHECK(calls[3].name == "cuStreamWaitEvent");
    CHECK(calls[3].arguments[0] == theirs);
    CHECK(calls[3].arguments[1] == calls[2].arguments[0]);
  }
  CHECK(gpus.driver.count("cuStreamSynchronize") == 0);
  CHECK(gpus.driver.violations.empty());
}

TEST_CASE("a stream that is being captured has no turns") {
  GpuFixture gpus;
  const auto gpu = gpus.platform.gpu();
  fuse::CudaApi api = gpus.driver.api();
  api.stream_is_capturing = [](fuse::cuda::Stream, int* status) {
    *status = 1;
    return fuse::cuda::success;
  };
  fuse::GpuContext context(api, "cuda", gpu->device());
  StreamOrder order(context);
  gpus.driver.calls.clear();
  for (const auto take_turns :
       {&StreamOrder::run_after, &StreamOrder::run_before}) {
    CHECK(contains(
        message_of<Error>([&] { (order.*take_turns)(stream_at(0xabc0)); }),
        "cuda:0: the stream to take turns with is being captured in a CUDA "
        "graph"));
  }
  CHECK(calls_on_streams(gpus.driver).empty());
}

TEST_CASE("calls for turns that fail say so, and nothing is kept") {
  for (const char* const call : {"cuStreamIsCapturing", "cuEventCreate",
                                 "cuEventRecord", "cuStreamWaitEvent"}) {
    GpuFixture gpus;
    const auto gpu = gpus.platform.gpu();
    gpus.driver.fail_always(call, fuse::cuda::not_supported);
    const std::string message =
        message_of<Error>([&] { gpu->order().run_after(stream_at(0xabc0)); });
    CAPTURE(message);
    CHECK(contains(message, "taking turns with another stream"));
    CHECK(contains(message, call));
    gpus.driver.fail_always(call, fuse::cuda::success);
    gpu->order().run_after(stream_at(0xabc0));
    CHECK(calls_on_streams(gpus.driver).back().name == "cuStreamWaitEvent");
  }
}
