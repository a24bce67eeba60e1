#include "fusebook/cuda/gpu_status.h"

#include <doctest/doctest.h>

#include <string>

#include "fusebook/nvrtc/cuda_platform.h"
#include "support/gpu_testing.h"

using namespace testing;
using fuse::CudaDriver;
using fuse::Error;
using fuse::GpuAbsence;
using fuse::GpuStatus;
using fuse::look_for_gpus;
using fuse::NoGpu;

TEST_CASE("devices are found with what they are") {
  CudaStandIn driver;
  driver.devices = 2;
  driver.capability = 121;
  driver.version = 12080;
  const GpuStatus status = look_for_gpus(driver.driver());
  CHECK(status.usable());
  CHECK(status.problem.empty());
  CHECK(status.driver_version == 12080);
  REQUIRE(status.devices.size() == 2);
  CHECK(status.devices[1].ordinal == 1);
  CHECK(status.devices[1].name == "Stand-in 1");
  CHECK(status.devices[1].capability == 121);
  CHECK(status.devices[1].multiprocessors == 4);
  CHECK(status.devices[1].max_block_threads == 1024);
  CHECK(status.devices[1].memory_bytes == 1 << 30);
  // Looking starts nothing.
  CHECK(driver.alive().empty());
}

TEST_CASE("without a driver's library there is a sentence, no failure") {
  const CudaDriver driver = fuse::load_cuda_driver("libno-such-driver.so.1");
  CHECK(driver.api == nullptr);
  const GpuStatus status = look_for_gpus(driver);
  CHECK(status.absence == GpuAbsence::no_driver);
  CHECK(contains(status.problem, "no NVIDIA driver was found"));
  CHECK(contains(status.problem, "libno-such-driver.so.1"));
  CHECK(status.devices.empty());
}

TEST_CASE("a library without the calls is an old driver") {
  const CudaDriver driver = fuse::load_cuda_driver("libm.so.6");
  CHECK(driver.api == nullptr);
  CHECK(driver.too_old);
  const GpuStatus status = look_for_gpus(driver);
  CHECK(status.absence == GpuAbsence::driver_too_old);
  CHECK(contains(status.problem, "lacks the function 'cuInit'"));
}

#ifdef FUSEBOOK_CUDA_STUB
TEST_CASE("the toolkit's stand-in has every call and says that it is none") {
  const CudaDriver driver = fuse::load_cuda_driver(FUSEBOOK_CUDA_STUB);
  REQUIRE(driver.problem == "");
  REQUIRE(driver.api != nullptr);
  // A table stays for ever, which the leak sanitizer sees where it is kept.
  static const void* kept = nullptr;
  kept = driver.api;
  CHECK(kept != nullptr);
  const GpuStatus status = look_for_gpus(driver);
  CHECK(status.absence == GpuAbsence::no_driver);
  CHECK(contains(status.problem, "the toolkit's stub"));
  CHECK(contains(status.problem, "code 34"));
}
#endif

TEST_CASE("a driver for CUDA 11 is too old, and nothing is started in it") {
  CudaStandIn driver;
  driver.version = 11080;
  const GpuStatus status = look_for_gpus(driver.driver());
  CHECK(status.absence == GpuAbsence::driver_too_old);
  CHECK(status.driver_version == 11080);
  CHECK(contains(status.problem, "it supports CUDA 11.8"));
  CHECK(driver.count("cuInit") == 0);
  driver.version = 12000;
  CHECK(look_for_gpus(driver.driver()).usable());
}

TEST_CASE("no device, in both ways a driver says so") {
  CudaStandIn driver;
  driver.devices = 0;
  const GpuStatus status = look_for_gpus(driver.driver());
  CHECK(status.absence == GpuAbsence::no_device);
  CHECK(contains(status.problem, "finds no GPU"));
  CHECK(contains(status.problem, "code 100 (CUDA_ERROR_NO_DEVICE)"));
  CHECK(status.driver_version == 13000);

  driver.devices = 1;
  driver.fail_always("cuInit", 0);
  CHECK(look_for_gpus(driver.driver()).usable());
  driver.devices = 0;
  // Started, and yet nothing there.
  fuse::CudaApi api = driver.api();
  api.init = [](unsigned) { return 0; };
  CHECK(look_for_gpus({&api, {}}).absence == GpuAbsence::no_device);
}

TEST_CASE("every failure of a driver's start is told apart") {
  CudaStandIn driver;
  const auto absence_for = [&](int code) {
    driver.fail_always("cuInit", code);
    const GpuStatus status = look_for_gpus(driver.driver());
    CHECK(contains(status.problem, "cuInit"));
    CHECK(contains(status.problem, "code " + std::to_string(code)));
    return status.absence;
  };
  CHECK(absence_for(fuse::cuda::stub_library) == GpuAbsence::no_driver);
  CHECK(absence_for(803) == GpuAbsence::driver_too_old);
  CHECK(absence_for(804) == GpuAbsence::driver_too_old);
  CHECK(absence_for(999) == GpuAbsence::driver_failed);
}

TEST_CASE("a question that fails is named") {
  CudaStandIn driver;
  for (const char* const name :
       {"cuDriverGetVersion", "cuDeviceGetCount", "cuDeviceGet",
        "cuDeviceGetName", "cuDeviceTotalMem", "cuDeviceGetAttribute"}) {
    driver.fail_always(name, 999);
    const GpuStatus status = look_for_gpus(driver.driver());
    CHECK(status.absence == GpuAbsence::driver_failed);
    CHECK(contains(status.problem, name));
    CHECK(status.devices.empty());
    driver.fail_always(name, 0);
  }
}

TEST_CASE("a platform gives out devices, each once") {
  GpuFixture gpus;
  gpus.driver.devices = 2;
  const auto first = gpus.platform.gpu(0);
  const auto second = gpus.platform.gpu(1);
  CHECK(first->label() == "cuda:0");
  CHECK(second->label() == "cuda:1");
  CHECK(gpus.platform.gpu(1) == second);
  CHECK(gpus.driver.count("cuDevicePrimaryCtxRetain") == 2);
  CHECK(gpus.driver.count("cuInit") == 1);
  CHECK(second->device().name == "Stand-in 1");
}

TEST_CASE("a device that is not there is an error that counts them") {
  GpuFixture gpus;
  CHECK(message_of<Error>([&] { gpus.platform.gpu(7); }) ==
        "no such device: cuda:7: the only one is cuda:0");
  CHECK(message_of<Error>([&] { gpus.platform.gpu(-1); }) ==
        "no such device: cuda:-1: the only one is cuda:0");
  GpuFixture more;
  more.driver.devices = 4;
  CHECK(message_of<Error>([&] { more.platform.gpu(4); }) ==
        "no such device: cuda:4: there are 4, from cuda:0 to cuda:3");
}

TEST_CASE("without any GPU a platform throws what callers fall back on") {
  GpuFixture gpus;
  gpus.driver.devices = 0;
  CHECK_THROWS_AS(gpus.platform.gpu(0), NoGpu);
  CHECK_FALSE(gpus.platform.status().usable());
  // One that was plugged in is found.
  gpus.driver.devices = 1;
  CHECK(gpus.platform.gpu(0)->label() == "cuda:0");
}

TEST_CASE("this machine's own driver can be asked") {
  const GpuStatus status = fuse::cuda_platform().status();
  CHECK(status.usable() == status.problem.empty());
  CHECK(status.usable() == !status.devices.empty());
  if (!status.usable()) {
    MESSAGE(status.problem);
    CHECK_THROWS_AS(fuse::cuda_platform().gpu(0), NoGpu);
  }
}
