#include "fusebook/support/available_memory.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>

using namespace fuse;
namespace fs = std::filesystem;

namespace {

/// A made-up system below a temporary folder.
class FakeSystem {
 public:
  FakeSystem() {
    std::string pattern = (fs::temp_directory_path() / "fuseXXXXXX").string();
    root_ = mkdtemp(pattern.data());
  }
  ~FakeSystem() { fs::remove_all(root_); }
  FakeSystem(const FakeSystem&) = delete;
  FakeSystem& operator=(const FakeSystem&) = delete;

  void put(const std::string& path, const std::string& text) const {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  MemorySources sources() const {
    return {(root_ / "proc").string(), (root_ / "cgroup").string()};
  }
  std::int64_t available() const { return available_memory(sources()); }

 private:
  fs::path root_;
};

}  // namespace

TEST_CASE("nothing to learn means no limit") {
  CHECK(FakeSystem().available() == std::numeric_limits<std::int64_t>::max());
  CHECK(resident_memory(FakeSystem().sources()) == 0);
}

TEST_CASE("available memory and free swap") {
  const FakeSystem system;
  system.put("proc/meminfo",
             "MemTotal: 9000 kB\nMemAvailable: 5000 kB\nSwapFree: 100 kB\n");
  CHECK(system.available() == 5100 * 1024);
}

TEST_CASE("control groups of version 2, limits of parents included") {
  const FakeSystem system;
  system.put("proc/meminfo", "MemAvailable: 5000 kB\n");
  system.put("proc/self/cgroup", "0::/outer/inner\n");
  system.put("cgroup/outer/inner/memory.max", "max\n");
  system.put("cgroup/outer/inner/memory.current", "1000\n");
  CHECK(system.available() == 5000 * 1024);
  system.put("cgroup/outer/memory.max", "9000\n");
  system.put("cgroup/outer/memory.current", "4000\n");
  CHECK(system.available() == 5000);
  system.put("cgroup/outer/memory.stat", "anon 7\ninactive_file 1500\n");
  CHECK(system.available() == 6500);
  // A namespace shows the own group at the mount itself.
  system.put("cgroup/memory.max", "300\n");
  system.put("cgroup/memory.current", "400\n");
  CHECK(system.available() == 0);
}

TEST_CASE("control groups of version 1") {
  const FakeSystem system;
  system.put("proc/self/cgroup", "9:cpu:/x\n4:hugetlb,memory:/job\n0::/\n");
  system.put("cgroup/memory/job/memory.limit_in_bytes", "70000\n");
  system.put("cgroup/memory/job/memory.usage_in_bytes", "20000\n");
  CHECK(system.available() == 50000);
  system.put("cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  system.put("cgroup/memory/memory.usage_in_bytes", "80000\n");
  CHECK(system.available() == 50000);
}

TEST_CASE("this process holds some memory and could have more") {
  CHECK(resident_memory() > 100000);
  CHECK(available_memory() > 0);
}

TEST_CASE("what was handed out and not touched is no longer free") {
  CHECK(room_for_more(100, 0, 0) == 100);
  CHECK(room_for_more(100, 0, 30) == 70);    // nothing touched
  CHECK(room_for_more(100, 20, 30) == 90);   // two thirds of it
  CHECK(room_for_more(100, 30, 30) == 100);  // all of it
  CHECK(room_for_more(100, 0, 130) == -30);
  // A library beside it holds 500.
  CHECK(room_for_more(100, 500, 0) == 100);
  CHECK(room_for_more(100, 530, 30) == 100);
}

TEST_CASE("the most that a process held") {
  const FakeSystem system;
  CHECK(peak_resident_memory(system.sources()) == 0);
  system.put("proc/self/status",
             "Name: bench\nVmPeak: 9000 kB\nVmHWM: 700 kB\nVmRSS: 600 kB\n");
  CHECK(peak_resident_memory(system.sources()) == 700 * 1024);
  CHECK(peak_resident_memory() > 100000);
}

TEST_CASE("sizes for people") {
  CHECK(format_bytes(0) == "0 bytes");
  CHECK(format_bytes(999) == "999 bytes");
  CHECK(format_bytes(1000) == "1.0 kB");
  CHECK(format_bytes(4194304) == "4.2 MB");
  CHECK(format_bytes(999960000) == "1.0 GB");
  CHECK(format_bytes(std::numeric_limits<std::int64_t>::max()) == "9.2 EB");
}
