#include <doctest/doctest.h>

#include <cstdint>
#include <memory>
#include <source_location>
#include <string>
#include <vector>

#include "fusebook/cuda_launch/gpu_kernel.h"
#include "support/gpu_testing.h"

using namespace testing;
using fuse::Error;
using fuse::GpuKernel;
using fuse::make_gpu_kernel;

namespace {

// A kernel of two phases: a list divided by the total of the squares of another.
class Phased {
 public:
  Phased(const std::vector<std::int64_t>& reduced,
         const std::vector<std::int64_t>& stored, CudaStandIn* driver) {
    driver->parameter_sizes = {sizeof(fuse::PhasedLaunch), sizeof(double)};
    driver->kernel = [this](const CudaStandIn::Launch& launch) {
      seen.push_back(read_as<fuse::PhasedLaunch>(launch.parameters[0]));
      cooperative.push_back(launch.cooperative);
      grids.push_back(launch.grid);
    };
    const MemoryList<float> grads = list_at(1, reduced);
    const MemoryList<float> params = list_at(100, stored);
    const auto here = std::source_location::current();
    fuse::Program p;
    const fuse::ValueId g = p.load(p.slot(grads.view(), grads.info()), here);
    const fuse::ValueId total =
        p.reduce(fuse::OpCode::total_sum_of_squares, g, here);
    const auto slot = p.slot(params.view(), params.info());
    const std::vector<fuse::ValueId> in = {p.load(slot, here), total};
    p.store(slot, p.apply(fuse::OpCode::div, in, here), here);
    table.bind(fuse::make_plan(p, [](const fuse::Origin&) { return false; }), p,
               1, [this](std::size_t count) {
                 numbers.resize(count);
                 return numbers.data();
               });
  }

  fuse::Table table;
  std::vector<double> numbers;
  std::vector<fuse::PhasedLaunch> seen;
  std::vector<bool> cooperative;
  std::vector<unsigned> grids;

 private:
  static MemoryList<float> list_at(std::uintptr_t place,
                                   const std::vector<std::int64_t>& numels) {
    std::vector<void*> addresses;
    for (std::size_t e = 0; e < numels.size(); ++e) {
      addresses.push_back(reinterpret_cast<void*>((place + e) << 28));
    }
    return {"list", addresses, numels};
  }
};

// A device and a kernel.
struct Device {
  GpuFixture gpus;
  std::shared_ptr<fuse::Gpu> gpu = gpus.platform.gpu();
  std::shared_ptr<GpuKernel> kernel = make_gpu_kernel("a kernel", gpu);
};

const std::vector<std::int64_t> three = {8193, 20000, 1};

}  // namespace

TEST_CASE("phases are one launch whose blocks wait for each other") {
  Device device;
  Phased phased(three, three, &device.gpus.driver);
  for (int n = 1; n <= 3; ++n) {
    device.kernel->launch(phased.table);
    CHECK(device.kernel->launches(phased.table) == 1);
    CHECK(device.kernel->counters().launches == n);
  }
  CHECK(device.gpus.driver.count("cuLaunchKernel") == 0);
  REQUIRE(phased.seen.size() == 3);
  const fuse::PhasedLaunch& launch = phased.seen[0];
  CHECK(phased.cooperative[0]);
  // It holds eight blocks, and 3 + 5 + 1 chunks are stored: two rounds of five.
  CHECK(phased.grids[0] == 5);
  CHECK(launch.phase_begin == 0);
  CHECK(launch.phase_end == 1);
  CHECK(launch.stores);
  CHECK(launch.phases[0].begin == 0);
  CHECK(launch.phases[0].end == 2 + 3 + 1);
  CHECK(launch.barrier->arrived == 0);
  CHECK(launch.barrier->generation == 0);
  CHECK(device.gpus.driver.violations.empty());
}

TEST_CASE("a device without cooperative launches has one for each phase") {
  GpuFixture gpus;
  gpus.driver.cooperative = false;
  const auto kernel = make_gpu_kernel("a kernel", gpus.platform.gpu());
  Phased phased(three, three, &gpus.driver);
  kernel->launch(phased.table);
  CHECK(kernel->launches(phased.table) == 2);
  CHECK(kernel->counters().launches == 2);
  CHECK(gpus.driver.count("cuLaunchCooperativeKernel") == 0);
  REQUIRE(phased.seen.size() == 2);
  CHECK(phased.seen[0].phase_begin == 0);
  CHECK(phased.seen[0].phase_end == 1);
  CHECK_FALSE(phased.seen[0].stores);
  CHECK(phased.seen[1].phase_begin == phased.seen[1].phase_end);
  CHECK(phased.seen[1].stores);
  CHECK(gpus.driver.violations.empty());
}

TEST_CASE("a device that holds fewer blocks than it said is asked once") {
  Device device;
  Phased phased(three, three, &device.gpus.driver);
  device.gpus.driver.resident = 1;
  for (int n = 1; n <= 3; ++n) {
    device.kernel->launch(phased.table);
    CHECK(device.kernel->launches(phased.table) == 2);
    CHECK(device.kernel->counters().launches == 2 * n);
  }
  CHECK(device.gpus.driver.count("cuLaunchCooperativeKernel") == 1);
  CHECK(device.gpus.driver.violations.empty());
  device.gpus.driver.resident = 2;
  const auto other = make_gpu_kernel("another kernel", device.gpu);
  device.gpus.driver.fail_always("cuLaunchCooperativeKernel", 1);
  const std::string message =
      message_of<Error>([&] { other->launch(phased.table); });
  CHECK(contains(message,
                 "launching a kernel of 2 phases: "
                 "cuLaunchCooperativeKernel failed"));
}

TEST_CASE("there are as many blocks as the largest phase can use") {
  Device device;
  Phased phased({100000}, {1}, &device.gpus.driver);
  device.kernel->launch(phased.table);
  // Eight at once, and 13 chunks are reduced: two rounds of seven.
  CHECK(phased.grids == std::vector<unsigned>{7});
}

TEST_CASE("where one phase alone has work, no block waits") {
  Device device;
  for (const bool reduces : {true, false}) {
    const std::vector<std::int64_t> none;
    Phased phased(reduces ? three : none, reduces ? none : three,
                  &device.gpus.driver);
    device.kernel->launch(phased.table);
    CHECK(device.kernel->launches(phased.table) == 1);
    REQUIRE(phased.seen.size() == 1);
    CHECK_FALSE(phased.cooperative[0]);
    CHECK(phased.seen[0].stores == !reduces);
    CHECK(phased.seen[0].phase_end - phased.seen[0].phase_begin == reduces);
  }
}
