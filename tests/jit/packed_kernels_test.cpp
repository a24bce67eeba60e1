#include "fusebook/jit/packed_kernels.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <thread>
#include <vector>

#include "fusebook/jit/cpu_levels.h"
#include "fusebook/jit/host_compiler.h"
#include "fusebook/jit/jit.h"
#include "fusebook/jit/loaded_libraries.h"
#include "fusebook/jit/pack_file.h"
#include "fusebook/support/content_hash.h"
#include "fusebook/support/error.h"
#include "support/answer_object.h"
#include "support/jit_testing.h"

using namespace jit_testing;
using fuse::PackedKernel;

namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != text.npos;
}

std::string key_for(const std::string& level, const std::string& source) {
  return fuse::pack_key("cpu " + level, fuse::compile_flags_for(level), source);
}

const std::string& lowest() { return fuse::cpu_levels().front(); }

// A folder of its own with a file of one kernel, whose answer is 7, for every
// CPU; no cache, and a compiler made of shell whose kernels answer 42.
struct Shop {
  TempDir dir;
  std::string file = dir / "kernels.pack";
  Env cache{"FUSEBOOK_CACHE_DIR", "off"};
  Env tmpdir{"TMPDIR", dir / "tmp"};
  Env cxx{"FUSEBOOK_CXX", dir / "cc"};
  Env kernels{"FUSEBOOK_KERNELS", file};

  Shop() {
    fuse::forget_libraries();
    fs::create_directory(dir / "tmp");
    write_text(dir / "object", answer_object(42));
    write_script(dir / "cc", "while [ \"$1\" != -o ]; do shift; done\ncp '" +
                                 dir / "object" + "' \"$2\"\n");
    write({{key_for(lowest(), "packed"), answer_object(7)}});
  }
  void write(const std::vector<PackedKernel>& packed) const {
    write_bytes(fuse::pack_file(packed));
  }
  void write_bytes(const std::string& bytes) const {
    write_text(file, bytes);
    chmod(file.c_str(), 0644);
  }
};

int answer_of(const fuse::Library& library) {
  return reinterpret_cast<int (*)()>(library.symbol("answer"))();
}

int build(const std::string& source) {
  return answer_of(*fuse::build_library(source));
}

// Builds twice with the file as it is: it is not used, and one warning in the
// process says why.
void check_refused(const Shop& shop, const std::string& reason) {
  CAPTURE(reason);
  fuse::forget_libraries();
  const long hits = fuse::jit_counters().pack_hits;
  CapturedStderr captured;
  CHECK(build("packed") == 42);
  fuse::forget_libraries();
  CHECK(build("packed") == 42);
  const std::string warnings = captured.stop();
  CHECK(count_of(warnings, "\n") == 1);
  CHECK(count_of(warnings, "fusebook: warning: the packed kernels '" +
                               shop.file + "' cannot be used") == 1);
  CHECK(contains(warnings, reason));
  CHECK(fuse::jit_counters().pack_hits == hits);
}

// A file that was changed so.
template <class Change>
void check_change_refused(const std::string& reason, Change change) {
  const Shop shop;
  change(shop);
  check_refused(shop, reason);
}

// The bytes of a file in which everything holds but what `change` did.
template <class Change>
std::string resealed(std::string bytes, Change change) {
  bytes.resize(bytes.size() - sizeof(std::uint64_t));
  change(bytes);
  const std::uint64_t checksum = fuse::content_hash(bytes);
  bytes.append(reinterpret_cast<const char*>(&checksum), sizeof(checksum));
  return bytes;
}

void give_away(const std::string& path) {
  REQUIRE(chown(path.c_str(), 12345, 12345) == 0);
}

}  // namespace

TEST_CASE("a packed kernel is loaded where there is no compiler") {
  const Shop shop;
  const Env nowhere("FUSEBOOK_CXX", shop.dir / "nowhere");
  const auto before = fuse::jit_counters();
  CapturedStderr captured;
  const auto library = fuse::build_library("packed");
  CHECK(answer_of(*library) == 7);
  CHECK(fuse::build_library("packed") == library);
  CHECK(captured.stop().empty());
  const auto after = fuse::jit_counters();
  CHECK(after.pack_hits == before.pack_hits + 1);
  CHECK(after.compiler_runs == before.compiler_runs);
  CHECK(after.disk_hits == before.disk_hits);
}

TEST_CASE("a packed kernel serves before the compiler, which serves the rest") {
  const Shop shop;
  CHECK(build("packed") == 7);
  CHECK(build("packed, or not") == 42);
  const Env other("FUSEBOOK_KERNELS", "");
  fuse::forget_libraries();
  CHECK(build("packed") == 42);
}

TEST_CASE(
    "a kernel that no file has, without a compiler, is told with the file") {
  const Shop shop;
  const Env nowhere("FUSEBOOK_CXX", shop.dir / "nowhere");
  try {
    build("another");
    CHECK(false);
  } catch (const fuse::NoCompiler& error) {
    CHECK(contains(error.what(), "a kernel is not in the packed kernels '" +
                                     shop.file + "'"));
    CHECK(contains(error.what(), "no host compiler"));
  }
}

TEST_CASE("the highest level that runs here is taken") {
  const auto& here = fuse::levels_run_here();
  REQUIRE(!here.empty());
  const Shop shop;
  std::vector<PackedKernel> packed;
  int answer = 100;
  for (const std::string& level : fuse::cpu_levels()) {
    packed.push_back({key_for(level, "levels"), answer_object(answer)});
    ++answer;
  }
  shop.write(packed);
  CHECK(build("levels") == 100 + int(here.size()) - 1);
  // Of what a file has, whatever its order.
  const Shop fewer;
  fewer.write({packed[0]});
  CHECK(build("levels") == 100);
}

TEST_CASE("other flags, another source or another target are another kernel") {
  const Shop shop;
  auto flags = fuse::compile_flags_for(lowest());
  flags.back() = "-O0";
  shop.write(
      {{fuse::pack_key("cpu " + lowest(), flags, "packed"), answer_object(7)},
       {key_for(lowest(), "packed "), answer_object(7)},
       {fuse::pack_key("gpu sm_90, CUDA 13", fuse::compile_flags_for(lowest()),
                       "packed"),
        answer_object(7)}});
  CHECK(build("packed") == 42);
}

TEST_CASE("a file that is cut off anywhere is refused as a whole") {
  const Shop shop;
  const std::string whole = read_text(shop.file);
  std::string problem;
  for (std::size_t size = 0; size < whole.size(); size += 101) {
    CAPTURE(size);
    shop.write_bytes(whole.substr(0, size));
    CHECK(fuse::PackFile::read(shop.file, &problem).size() == 0);
    CHECK(!problem.empty());
  }
  shop.write_bytes(whole.substr(0, whole.size() - 1));
  check_refused(shop, "the file is truncated");
}

TEST_CASE("a changed byte anywhere is noticed") {
  const Shop shop;
  const std::string whole = read_text(shop.file);
  std::string problem;
  for (std::size_t at = 0; at < whole.size(); at += 103) {
    CAPTURE(at);
    std::string changed = whole;
    changed[at] = char(changed[at] ^ 4);
    shop.write_bytes(changed);
    CHECK(fuse::PackFile::read(shop.file, &problem).size() == 0);
    CHECK(!problem.empty());
  }
  std::string changed = whole;
  changed[whole.size() / 2] = char(changed[whole.size() / 2] ^ 4);
  shop.write_bytes(changed);
  check_refused(shop, "the file is damaged: its checksum does not match");
}

TEST_CASE("lengths that do not fit are noticed whatever the checksum says") {
  check_change_refused("its lengths do not match", [](const Shop& shop) {
    shop.write_bytes(resealed(read_text(shop.file), [](std::string& bytes) {
      const std::size_t length = bytes.find('\n') + 1;
      bytes[length + 7] = '\x7f';
    }));
  });
}

TEST_CASE("another format is named, and so is a file of something else") {
  check_change_refused(
      "the file has format 2, and this version reads format 1",
      [](const Shop& shop) {
        shop.write_bytes(resealed(read_text(shop.file), [](std::string& bytes) {
          bytes[bytes.find('\n') - 1] = '2';
        }));
      });
  check_change_refused("the file holds no packed kernels",
                       [](const Shop& shop) { shop.write_bytes("text\n"); });
}

TEST_CASE("kernels for other CPUs alone are told once") {
  check_change_refused(
      " on the CPU: they are for x86-64-v9, and this CPU runs " +
          fuse::levels_run_here().front() + " at most",
      [](const Shop& shop) {
        shop.write({{key_for("x86-64-v9", "packed"), answer_object(7)}});
      });
}

TEST_CASE(
    "a file that others may write is not loaded, nor one in their folder") {
  check_change_refused(
      "the file is writable by others (mode 664; chmod go-w it)",
      [](const Shop& shop) { chmod(shop.file.c_str(), 0664); });
  check_change_refused(
      "the file is writable by others (mode 646; chmod go-w it)",
      [](const Shop& shop) { chmod(shop.file.c_str(), 0646); });
  check_change_refused(
      "the file lies in a folder that is writable by others (mode 770; chmod "
      "go-w it)",
      [](const Shop& shop) { chmod(shop.dir.path().c_str(), 0770); });
}

TEST_CASE("a link is not followed, and nothing but a file is read") {
  check_change_refused("the file is a symbolic link", [](const Shop& shop) {
    fs::rename(shop.file, shop.dir / "real");
    fs::create_symlink("real", shop.file);
  });
  check_change_refused("the file is not a regular file", [](const Shop& shop) {
    fs::remove(shop.file);
    REQUIRE(mkfifo(shop.file.c_str(), 0600) == 0);
  });
  check_change_refused("the file is not a regular file", [](const Shop& shop) {
    fs::remove(shop.file);
    fs::create_directory(shop.file);
  });
  check_change_refused("the file cannot be opened: No such file or directory",
                       [](const Shop& shop) { fs::remove(shop.file); });
}

TEST_CASE("what another user owns is not loaded" *
          doctest::skip(geteuid() != 0)) {
  check_change_refused("the file belongs to user 12345, not to user 0",
                       [](const Shop& shop) { give_away(shop.file); });
  check_change_refused(
      "the file lies in a folder that belongs to user 12345, not to user 0",
      [](const Shop& shop) { give_away(shop.dir.path()); });
}

TEST_CASE("what root installed, any user loads" *
          doctest::skip(geteuid() != 0)) {
  const Shop shop;
  chmod(shop.dir.path().c_str(), 0755);
  CHECK(run_child([&] {
          if (setuid(12345) != 0) return 1;
          return build("packed") == 7 ? 0 : 2;
        }) == 0);
}

TEST_CASE("a kernel that cannot be loaded is told once and then compiled") {
  const Shop shop;
  shop.write({{key_for(lowest(), "packed"), answer_object(7).substr(0, 99)}});
  CapturedStderr captured;
  CHECK(build("packed") == 42);
  fuse::forget_libraries();
  CHECK(build("packed") == 42);
  const std::string warnings = captured.stop();
  CHECK(count_of(warnings, "fusebook: warning: ") == 1);
  CHECK(contains(warnings, "of the packed kernels '" + shop.file +
                               "' one cannot be used: the compiled kernel "
                               "cannot be loaded"));
}

TEST_CASE("load_kernels says whether a file can be used") {
  const Shop shop;
  const Env unnamed("FUSEBOOK_KERNELS", nullptr);
  CHECK(run_child([&] {
          if (build("packed") != 42) return 1;
          fuse::forget_libraries();
          if (!fuse::load_kernels(shop.file) || build("packed") != 7) return 2;
          // What is read last comes first, and later changes do not matter.
          shop.write({{key_for(lowest(), "packed"), answer_object(8)}});
          fuse::forget_libraries();
          if (build("packed") != 7) return 3;
          if (!fuse::load_kernels(shop.file)) return 4;
          fuse::forget_libraries();
          if (build("packed") != 8) return 5;
          const CapturedStderr captured;
          if (fuse::load_kernels(shop.dir / "none")) return 6;
          shop.write({{key_for("x86-64-v9", "packed"), answer_object(9)}});
          return fuse::load_kernels(shop.file) ? 7 : 0;
        }) == 0);
}

TEST_CASE("threads that read a file at the same time all get its kernel") {
  const Shop shop;
  std::vector<int> answers(8);
  std::vector<std::thread> threads;
  for (int& answer : answers) {
    threads.emplace_back([&] { answer = build("packed"); });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(answers == std::vector<int>(8, 7));
}
