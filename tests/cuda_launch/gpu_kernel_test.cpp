#include "fusebook/cuda_launch/gpu_kernel.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "support/gpu_testing.h"

using namespace testing;
using fuse::Error;
using fuse::gpu_argument_count;
using fuse::GpuKernel;
using fuse::GpuLaunch;
using fuse::make_gpu_kernel;

namespace {

// What the device sees when it comes to a launch.
struct Seen {
  GpuLaunch launch;
  std::vector<char> table;
  std::vector<double> arguments;
  std::vector<double> columns;
  std::vector<double> args;
};

// Reads tables in the memory of the stand-in, as a kernel would.
class Device {
 public:
  explicit Device(std::size_t argument_count = 1, std::size_t args = 0) {
    gpus.driver.parameter_sizes = {sizeof(GpuLaunch),
                                   argument_count * sizeof(double)};
    gpus.driver.kernel = [this, args](const CudaStandIn::Launch& launch) {
      look(launch, args);
    };
    gpu = gpus.platform.gpu();
    kernel = make_gpu_kernel("a kernel", gpu);
  }

  GpuFixture gpus;
  std::shared_ptr<fuse::Gpu> gpu;
  std::shared_ptr<GpuKernel> kernel;
  std::vector<Seen> seen;
  std::size_t table_bytes = 0;
  std::size_t column_count = 0;

 private:
  void look(const CudaStandIn::Launch& launch, std::size_t args) {
    Seen now = {read_as<GpuLaunch>(launch.parameters[0]), {}, {}, {}, {}};
    const auto& table = now.launch.table;
    const auto* const start = reinterpret_cast<const char*>(table.pointers);
    now.table.assign(start, start + table_bytes);
    const auto& values = launch.parameters[1];
    now.arguments.resize(values.size() / sizeof(double));
    std::memcpy(now.arguments.data(), values.data(), values.size());
    if (table.columns != nullptr) {
      // The first body has none of its own.
      now.columns.assign(table.columns + 1, table.columns + 1 + column_count);
    }
    if (table.args != nullptr) {
      now.args.assign(table.args, table.args + args);
    }
    seen.push_back(now);
  }
};

const std::vector<std::int64_t> sizes = {5, 0, 4096, 4097, 20000, 1};

}  // namespace

TEST_CASE("the table on the device is what a plain loop makes of it") {
  Random random(1);
  for (int n = 0; n < 60; ++n) {
    std::vector<std::int64_t> some(std::size_t(1 + random.below(12)));
    for (std::int64_t& size : some) {
      const int kind = random.below(4);
      size =
          kind == 0 ? random.below(3) : random.below(kind == 1 ? 100 : 30000);
      if (kind == 2) size = size / 4096 * 4096;
    }
    Device device;
    const SampleTable sample(some, 1 + random.below(3), 0.5);
    const std::vector<char> expected = expected_table(sample.table);
    device.table_bytes = expected.size();
    device.kernel->launch(sample.table);
    REQUIRE(device.seen.size() == 1);
    const Seen& seen = device.seen[0];
    REQUIRE(seen.table == expected);
    // Its parts lie where the launch says.
    const auto offset = [&](const void* part) {
      return std::size_t(
          static_cast<const char*>(part) -
          reinterpret_cast<const char*>(seen.launch.table.pointers));
    };
    const std::size_t rows = sample.table.rows().size();
    const std::size_t chunks = (rows * 8 + 15) / 16 * 16;
    REQUIRE(offset(seen.launch.chunks) == chunks);
    const auto count = std::size_t(seen.launch.chunk_count);
    REQUIRE(offset(seen.launch.tickets) == chunks + count * 48);
    REQUIRE(expected.size() == chunks + count * 48 + rows * 4);
    REQUIRE(device.gpus.driver.violations.empty());
  }
}

TEST_CASE("lines of strided tensors come with their strides") {
  Device device;
  // Two tensors of 3 x 5000 elements, whose columns lie 7 elements apart.
  const std::vector<std::int64_t> shape = {3, 5000};
  const std::vector<std::int64_t> apart = {40000, 7};
  const std::vector<fuse::Layout> layouts(2, {shape.data(), apart.data(), 2});
  const std::vector<std::int64_t> numels = {15000, 15000};
  const std::vector<void*> addresses = {reinterpret_cast<void*>(1 << 24),
                                        reinterpret_cast<void*>(1 << 26)};
  const fuse::ListView list = {next_list_id(), addresses.data(),
                               numels.data(),  2,
                               "params",       layouts.data()};
  const auto here = std::source_location::current();
  fuse::Program p;
  const auto slot =
      p.slot(list, {fuse::DType::float32, fuse::Rate::element, true});
  const std::vector<fuse::ValueId> in = {p.load(slot, here)};
  p.store(slot, p.apply(fuse::OpCode::neg, in, here), here);
  fuse::Table table;
  table.bind(fuse::make_plan(p, [](const fuse::Origin&) { return false; }), p,
             1);
  REQUIRE(table.rows().size() == 6);
  REQUIRE(table.strides().size() == 6);
  const std::vector<char> expected = expected_table(table);
  device.table_bytes = expected.size();
  device.kernel->launch(table);
  CHECK(device.seen[0].table == expected);
  const GpuLaunch& launch = device.seen[0].launch;
  CHECK(launch.chunk_count == 12);
  for (int row = 0; row < 6; ++row) CHECK(launch.table.strides[row] == 7);
  // The lines of a tensor share its ticket.
  for (int c = 0; c < 12; ++c) CHECK(launch.chunks[c].shares == 6);
}

TEST_CASE("a table is uploaded once, and again when its lists change") {
  Device device;
  SampleTable sample(sizes, 1, 0.5);
  const std::vector<char> expected = expected_table(sample.table);
  device.table_bytes = expected.size();
  for (int i = 0; i < 10; ++i) {
    CHECK_FALSE(sample.bind(i));
    device.kernel->launch(sample.table);
  }
  CHECK(device.kernel->counters().launches == 10);
  CHECK(device.kernel->counters().table_uploads == 1);
  CHECK(device.kernel->counters().scalar_uploads == 0);
  CHECK(device.gpus.driver.count("cuMemcpyHtoDAsync") == 1);
  CHECK(device.gpus.driver.count("cuLaunchKernel") == 10);
  CHECK(device.kernel->counters().bytes_uploaded ==
        std::int64_t(expected.size()));
  REQUIRE(device.seen.size() == 10);
  for (int i = 0; i < 10; ++i) {
    CHECK(device.seen[std::size_t(i)].table == expected);
    // The scalar travels by value, and is new each time.
    CHECK(device.seen[std::size_t(i)].arguments ==
          std::vector<double>{double(i)});
    CHECK(device.seen[std::size_t(i)].launch.table.args == nullptr);
    CHECK(device.seen[std::size_t(i)].launch.table.columns == nullptr);
  }
  const SampleTable other({7, 9000}, 1, 0.5);
  const std::vector<char> other_bytes = expected_table(other.table);
  device.table_bytes = other_bytes.size();
  device.kernel->launch(other.table);
  CHECK(device.kernel->counters().table_uploads == 2);
  CHECK(device.seen.back().table == other_bytes);
}

TEST_CASE("of a table whose tensors moved the addresses alone are uploaded") {
  Device device;
  SampleTable sample({300, 5, 0, 2000}, 2, 0.5);
  device.table_bytes = expected_table(sample.table).size();
  device.kernel->launch(sample.table);
  const std::int64_t before = device.kernel->counters().bytes_uploaded;
  sample.move(1);
  CHECK(sample.bind(0.5));
  device.kernel->launch(sample.table);
  CHECK(device.seen.back().table == expected_table(sample.table));
  CHECK(device.kernel->counters().bytes_uploaded == before + 8);
  sample.move(1);
  sample.move(3);
  CHECK(sample.bind(0.5));
  device.kernel->launch(sample.table);
  CHECK(device.seen.back().table == expected_table(sample.table));
  CHECK(device.kernel->counters().bytes_uploaded == before + 8 + 24);
  CHECK(device.kernel->counters().table_uploads == 1);
  CHECK(device.kernel->counters().table_moves == 2);
  // Moved twice since the last launch: the device knows nothing of that.
  sample.move(0);
  CHECK(sample.bind(0.5));
  sample.move(1);
  CHECK(sample.bind(0.5));
  device.kernel->launch(sample.table);
  CHECK(device.seen.back().table == expected_table(sample.table));
  CHECK(device.kernel->counters().table_uploads == 2);
}

TEST_CASE("sets of tensors that take turns stay on the device") {
  Device device;
  SampleTable one({300, 5}, 1, 0.5);
  device.table_bytes = expected_table(one.table).size();
  std::vector<SampleTable> sets;
  for (int i = 0; i < 3; ++i)
    sets.emplace_back(std::vector<std::int64_t>{300, 5}, 1, 0.5);
  for (int i = 0; i < 12; ++i) {
    SampleTable& set = sets[std::size_t(i % 3)];
    set.table = std::move(one.table);
    set.bind(0.5);
    one.table = std::move(set.table);
    device.kernel->launch(one.table);
    REQUIRE(device.seen.back().table == expected_table(one.table));
  }
  // Each was new, then known to come back, then there.
  CHECK(device.kernel->counters().table_uploads +
            device.kernel->counters().table_moves <=
        6);
}

TEST_CASE("a steady step makes three calls: turn to the device, launch, back") {
  Device device;
  const SampleTable sample(sizes, 1, 0.5);
  device.kernel->launch(sample.table);
  const std::size_t before = device.gpus.driver.calls.size();
  device.kernel->launch(sample.table);
  const auto& calls = device.gpus.driver.calls;
  REQUIRE(calls.size() == before + 3);
  CHECK(calls[before].name == "cuCtxPushCurrent");
  CHECK(calls[before + 1].name == "cuLaunchKernel");
  CHECK(calls[before + 2].name == "cuCtxPopCurrent");
}

TEST_CASE("tables that take turns stay on the device") {
  Device device;
  std::vector<std::unique_ptr<SampleTable>> samples;
  for (int i = 0; i < 5; ++i) {
    samples.push_back(std::make_unique<SampleTable>(
        std::vector<std::int64_t>{100 + i}, 1, 0.5));
  }
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 4; ++i) {
      device.kernel->launch(samples[std::size_t(i)]->table);
    }
  }
  CHECK(device.kernel->counters().table_uploads == 4);
  // A fifth takes the place of the one used longest ago.
  device.kernel->launch(samples[4]->table);
  CHECK(device.kernel->counters().table_uploads == 5);
  for (int i = 1; i < 5; ++i) {
    device.kernel->launch(samples[std::size_t(i)]->table);
  }
  CHECK(device.kernel->counters().table_uploads == 5);
  device.kernel->launch(samples[0]->table);
  CHECK(device.kernel->counters().table_uploads == 6);
}

TEST_CASE("a table in flight is never written over") {
  Device device;
  device.gpus.driver.deferred = true;
  Random random(2);
  std::vector<std::unique_ptr<SampleTable>> samples;
  std::vector<std::vector<char>> expected;
  for (int i = 0; i < 12; ++i) {
    // Equal sizes in bytes, so that they follow one another in one place.
    samples.push_back(std::make_unique<SampleTable>(
        std::vector<std::int64_t>{4000 - i, i, 5000}, 2, 0.5,
        std::vector<double>{i + 0.5, -i - 1.0}));
    expected.push_back(expected_table(samples.back()->table));
  }
  device.table_bytes = expected[0].size();
  device.column_count = 2;
  std::vector<int> order;
  std::vector<std::vector<double>> columns;
  for (int n = 0; n < 300; ++n) {
    const int which = random.below(12);
    SampleTable& sample = *samples[std::size_t(which)];
    columns.push_back({double(n), double(random.below(2))});
    sample.bind(n, columns.back());
    device.kernel->launch(sample.table);
    order.push_back(which);
    device.gpus.driver.run(std::size_t(random.below(6)));
  }
  device.gpus.driver.run();
  REQUIRE(device.seen.size() == 300);
  for (std::size_t n = 0; n < 300; ++n) {
    REQUIRE(device.seen[n].table == expected[std::size_t(order[n])]);
    REQUIRE(device.seen[n].arguments == std::vector<double>{double(n)});
    REQUIRE(device.seen[n].columns == columns[n]);
  }
  CHECK(device.gpu->staging().waits() > 0);
  CHECK(device.gpus.driver.violations.empty());
}

TEST_CASE("columns are uploaded when a bit of them changed") {
  Device device;
  device.column_count = 3;
  SampleTable sample(sizes, 3, 0.5, {1, 2, 3});
  const auto uploads = [&] { return device.kernel->counters().scalar_uploads; };
  device.kernel->launch(sample.table);
  CHECK(uploads() == 1);
  CHECK(device.seen.back().columns == std::vector<double>{1, 2, 3});
  CHECK(device.seen.back().launch.table.column_count == 1);
  device.kernel->launch(sample.table);
  CHECK(uploads() == 1);
  sample.bind(0.5, {1, 2, 4});
  device.kernel->launch(sample.table);
  CHECK(uploads() == 2);
  CHECK(device.seen.back().columns == std::vector<double>{1, 2, 4});
  // Zeros of either sign are different numbers, a NaN is equal to itself.
  sample.bind(0.5, {0.0, 2, 4});
  device.kernel->launch(sample.table);
  sample.bind(0.5, {-0.0, 2, 4});
  device.kernel->launch(sample.table);
  CHECK(uploads() == 4);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (int i = 0; i < 3; ++i) {
    sample.bind(0.5, {nan, 2, 4});
    device.kernel->launch(sample.table);
  }
  CHECK(uploads() == 5);
  CHECK(device.kernel->counters().table_uploads == 1);
}

TEST_CASE("how many scalars travel by value") {
  CHECK(gpu_argument_count(0) == 1);
  CHECK(gpu_argument_count(1) == 1);
  CHECK(gpu_argument_count(2) == 2);
  CHECK(gpu_argument_count(256) == 256);
  CHECK(gpu_argument_count(257) == 1);
}

TEST_CASE("256 scalars travel by value, more through the device's memory") {
  for (const int extra : {255, 256}) {
    const std::size_t all = std::size_t(extra) + 1;
    const bool by_value = all <= 256;
    Device device(by_value ? all : 1, by_value ? 0 : all);
    device.column_count = 2;
    SampleTable sample({10}, 2, 0.5, {7, 8}, extra);
    REQUIRE(sample.table.args().size() == all);
    device.kernel->launch(sample.table);
    const Seen& seen = device.seen.back();
    const std::vector<double> args(sample.table.args().begin(),
                                   sample.table.args().end());
    CHECK(seen.columns == std::vector<double>{7, 8});
    CHECK((by_value ? seen.arguments : seen.args) == args);
    CHECK((seen.launch.table.args == nullptr) == by_value);
    CHECK(device.kernel->counters().scalar_uploads == 1);
    device.kernel->launch(sample.table);
    CHECK(device.kernel->counters().scalar_uploads == 1);
    sample.bind(0.75, {7, 8}, extra);
    device.kernel->launch(sample.table);
    CHECK(device.kernel->counters().scalar_uploads == (by_value ? 1 : 2));
    CHECK((by_value ? device.seen.back().arguments
                    : device.seen.back().args)[0] == 0.75);
  }
}

TEST_CASE("the grid fills the device and no more") {
  Device device;
  device.gpus.driver.multiprocessors = 4;
  device.gpus.driver.resident = 2;
  const auto grid_for = [&](std::int64_t numel) {
    const SampleTable sample({numel}, 1, 0.5);
    device.kernel->launch(sample.table);
    CHECK(device.gpus.driver.launches.back().block == 256);
    return device.gpus.driver.launches.back().grid;
  };
  CHECK(grid_for(0) == 1);
  CHECK(grid_for(1) == 1);
  CHECK(grid_for(4096) == 1);
  CHECK(grid_for(4097) == 2);
  CHECK(grid_for(8 * 4096) == 8);
  CHECK(grid_for(100 * 4096) == 8);
  CHECK(grid_for((std::int64_t(1) << 31) + 5) == 8);
  const auto launch =
      read_as<GpuLaunch>(device.gpus.driver.launches.back().parameters[0]);
  CHECK(launch.chunk_count == (1 << 19) + 1);
  CHECK(launch.chunks[launch.chunk_count - 1].begin == std::int64_t(1) << 31);
  CHECK(launch.chunks[launch.chunk_count - 1].end ==
        (std::int64_t(1) << 31) + 5);
}

TEST_CASE("an empty list launches nothing") {
  Device device;
  const SampleTable sample({}, 1, 0.5);
  const std::size_t before = device.gpus.driver.calls.size();
  device.kernel->launch(sample.table);
  CHECK(device.gpus.driver.calls.size() == before);
  CHECK(device.kernel->counters().launches == 0);
}

TEST_CASE("a source is compiled and loaded once a device") {
  GpuFixture gpus;
  gpus.driver.devices = 2;
  gpus.driver.capability = 86;
  const auto first = gpus.platform.gpu(0);
  const auto one = make_gpu_kernel("one", first);
  const auto again = make_gpu_kernel("one", first);
  CHECK(gpus.compiler->compilations == 1);
  CHECK(gpus.compiler->last_capability == 86);
  CHECK(gpus.driver.count("cuModuleLoadData") == 1);
  const auto other = make_gpu_kernel("other", first);
  const auto second = make_gpu_kernel("one", gpus.platform.gpu(1));
  CHECK(gpus.driver.count("cuModuleLoadData") == 3);
  CHECK(one->resources().registers == 40);
  CHECK(one->resources().shared_bytes == 8);
  CHECK(one->resources().spill_loads == -1);
}

TEST_CASE("kernels that nobody uses can be forgotten") {
  GpuFixture gpus;
  const auto gpu = gpus.platform.gpu();
  auto one = make_gpu_kernel("one", gpu);
  const auto two = make_gpu_kernel("two", gpu);
  one = nullptr;
  gpu->forget_modules();
  CHECK(gpus.driver.count("cuModuleUnload") == 1);
  CHECK_NOTHROW(make_gpu_kernel("two", gpu));
  CHECK(gpus.compiler->compilations == 2);
}

TEST_CASE("code that the device does not take is an error with advice") {
  GpuFixture gpus;
  const auto gpu = gpus.platform.gpu();
  const std::string message =
      message_of<Error>([&] { make_gpu_kernel("for another device", gpu); });
  CHECK(contains(message, "cuda:0: loading a kernel: cuModuleLoadData failed"));
  CHECK(contains(message, "code 209 (CUDA_ERROR_NO_BINARY_FOR_GPU)"));
  CHECK(contains(message, "clear the kernel cache"));
  gpus.driver.resident = 0;
  CHECK(contains(message_of<Error>([&] { make_gpu_kernel("too large", gpu); }),
                 "needs more resources than a multiprocessor has"));
}

TEST_CASE("what failed to upload is uploaded again") {
  Device device;
  device.column_count = 2;
  SampleTable sample(sizes, 3, 0.5, {1, 2});
  const std::vector<char> expected = expected_table(sample.table);
  device.table_bytes = expected.size();
  auto& driver = device.gpus.driver;
  const auto launch = [&] { device.kernel->launch(sample.table); };
  const auto fail_once = [&](const char* call) {
    driver.fail_always(call, 999);
    CHECK_THROWS_AS(launch(), Error);
    CHECK_THROWS_AS(launch(), Error);
    driver.fail_always(call, 0);
    launch();
  };
  fail_once("cuMemcpyHtoDAsync");
  REQUIRE(device.seen.size() == 1);
  CHECK(device.seen[0].table == expected);
  CHECK(device.seen[0].columns == std::vector<double>{1, 2});
  sample.bind(0.5, {3, 4});
  fail_once("cuMemcpyHtoDAsync");
  REQUIRE(device.seen.size() == 2);
  CHECK(device.seen[1].columns == std::vector<double>{3, 4});
  // The table was there all the time.
  CHECK(device.kernel->counters().table_uploads == 1);
  sample.bind(0.5, {1, 2});
  fail_once("cuEventRecord");
  CHECK(device.seen.back().columns == std::vector<double>{1, 2});
  CHECK(device.seen.size() == 3);
}

TEST_CASE("tables are told apart by their version") {
  SampleTable one({1, 2}, 1, 0.5);
  const auto version = one.table.version();
  CHECK(version != 0);
  CHECK(fuse::Table().version() == 0);
  one.bind(3);
  CHECK(one.table.version() == version);
  const SampleTable two({1, 2}, 1, 0.5);
  CHECK(two.table.version() != version);
  const fuse::Table copy = one.table;
  CHECK(copy.version() == version);
}
