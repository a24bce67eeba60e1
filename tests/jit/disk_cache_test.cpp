#include "fusebook/jit/disk_cache.h"

#include <doctest/doctest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <utime.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <ctime>
#include <string>
#include <vector>

#include "fusebook/jit/cache_directory.h"
#include "fusebook/jit/host_compiler.h"
#include "fusebook/jit/jit.h"
#include "fusebook/jit/loaded_libraries.h"
#include "fusebook/support/content_hash.h"
#include "fusebook/support/error.h"
#include "fusebook/support/warning.h"
#include "support/answer_object.h"
#include "support/jit_testing.h"

using namespace jit_testing;
using fuse::KernelCache;

namespace {

using Names = std::vector<std::string>;

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != text.npos;
}

// A cache of its own, and a compiler made of shell that notes its runs and
// answers 42.
struct Workshop {
  TempDir dir;
  std::string cache = dir / "cache";
  Env cache_dir{"FUSEBOOK_CACHE_DIR", cache};
  Env tmpdir{"TMPDIR", dir / "tmp"};
  Env cxx{"FUSEBOOK_CXX", dir / "cc"};

  Workshop() {
    fuse::forget_libraries();
    fs::create_directory(dir / "tmp");
    write_text(dir / "object", answer_object(42));
    write_compiler("");
  }
  void write_compiler(const std::string& first) const {
    write_script(dir / "cc", "echo ran >> '" + dir / "log" + "'\n" + first +
                                 "while [ \"$1\" != -o ]; do shift; done\n" +
                                 "cp '" + dir / "object" + "' \"$2\"\n");
  }
  std::size_t runs() const { return count_of(read_text(dir / "log"), "ran"); }
  std::string entry() const {
    const Names names = names_in(cache);
    return names.size() == 1 ? cache + "/" + names[0] : std::string();
  }
};

// Builds as a process that has never seen the source; says whether the result
// is right, and keeps what was written to standard error.
bool build_anew(const std::string& source, std::string* warnings = nullptr) {
  fuse::forget_libraries();
  CapturedStderr captured;
  const auto library = fuse::build_library(source);
  if (warnings != nullptr) *warnings = captured.stop();
  return reinterpret_cast<int (*)()>(library->symbol("answer"))() == 42;
}

std::size_t warning_lines(const std::string& text) {
  CHECK(count_of(text, "\n") == count_of(text, "fusebook: warning: "));
  return count_of(text, "fusebook: warning: ");
}

// Builds anew; expects one warning that holds `path` and `reason`.
void check_one_warning(const std::string& source, const std::string& path,
                       const std::string& reason) {
  CAPTURE(reason);
  std::string warnings;
  CHECK(build_anew(source, &warnings));
  CHECK(warning_lines(warnings) == 1);
  CHECK(contains(warnings, "'" + path));
  CHECK(contains(warnings, reason));
}

void check_no_warning(const std::string& source) {
  std::string warnings;
  CHECK(build_anew(source, &warnings));
  CHECK(warnings.empty());
}

// Each flaw is made with the entry's path, found once, and mended.
template <class Spoil>
void check_replaced(const char* source, const std::string& reason,
                    Spoil spoil) {
  const Workshop shop;
  CHECK(build_anew(source));
  const std::string entry = shop.entry();
  const std::string whole = read_text(entry);
  spoil(entry);
  check_one_warning(source, entry, reason);
  CHECK(shop.runs() == 2);
  check_no_warning(source);
  CHECK(shop.runs() == 2);
  CHECK(read_text(entry) == whole);
}

// The cache directory is `path`, which cannot be used: work goes on, with one
// warning in the process that says why.
void check_unusable(const Workshop& shop, const std::string& path,
                    const std::string& reason) {
  const Env env("FUSEBOOK_CACHE_DIR", path);
  const std::size_t before = shop.runs();
  check_one_warning("one for " + path, path, "' " + reason);
  check_no_warning("two for " + path);
  CHECK(shop.runs() == before + 2);
  CHECK(names_in(shop.dir / "tmp").empty());
}

// From now on the kernel refuses this process, and its children, memfd_create.
bool forbid_memory_files() {
  sock_filter rules[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_memfd_create, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  sock_fprog program = {4, rules};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

bool is_root() { return geteuid() == 0; }

}  // namespace

TEST_CASE("an entry is compiled once and then taken from the disk") {
  const Workshop shop;
  const auto before = fuse::jit_counters();
  CHECK(build_anew("first"));
  CHECK(build_anew("first"));
  CHECK(build_anew("first"));
  CHECK(shop.runs() == 1);
  CHECK(fuse::jit_counters().compiler_runs == before.compiler_runs + 1);
  CHECK(fuse::jit_counters().disk_hits == before.disk_hits + 2);
  CHECK(build_anew("second"));
  CHECK(shop.runs() == 2);
  CHECK(names_in(shop.cache).size() == 2);
}

TEST_CASE("another process takes what this one compiled") {
  const Workshop shop;
  CHECK(build_anew("for another process"));
  CHECK(run_child([] {
          const long runs = fuse::jit_counters().compiler_runs;
          const bool right = build_anew("for another process");
          return right && fuse::jit_counters().compiler_runs == runs ? 0 : 1;
        }) == 0);
  CHECK(shop.runs() == 1);
}

TEST_CASE("an entry names everything its code depends on") {
  const Workshop shop;
  CHECK(build_anew("all of the key"));
  const std::string entry = read_text(shop.entry());
  CHECK(entry.starts_with(answer_object(42)));
  CHECK(contains(entry, "all of the key"));
  CHECK(contains(entry, "-O3"));
  CHECK(contains(entry, "instruction set: "));
  CHECK(contains(entry, shop.dir / "cc" + " -> "));
  struct stat status = {};
  CHECK(stat(shop.entry().c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0600);
  CHECK(stat(shop.cache.c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0700);
}

TEST_CASE("a changed compiler, or other words, compile anew") {
  const Workshop shop;
  CHECK(build_anew("changing compiler"));
  shop.write_compiler("# changed\n");
  CHECK(build_anew("changing compiler"));
  CHECK(shop.runs() == 2);
  {
    const Env env("FUSEBOOK_CXX", shop.dir / "cc" + " -DX");
    CHECK(build_anew("changing compiler"));
  }
  CHECK(shop.runs() == 3);
  CHECK(build_anew("changing compiler"));
  CHECK(shop.runs() == 3);
}

TEST_CASE("a damaged entry is warned about once and replaced") {
  for (const std::size_t kept : {0, 1, 31, 32, 1000}) {
    check_replaced("truncated", "it is truncated",
                   [&](const auto& path) { fs::resize_file(path, kept); });
  }
  check_replaced("one byte short", "it is truncated", [](const auto& path) {
    fs::resize_file(path, fs::file_size(path) - 1);
  });
  check_replaced("longer", "it is truncated", [](const auto& path) {
    write_text(path, read_text(path) + "x");
  });
}

TEST_CASE("one flipped bit anywhere is noticed") {
  const Workshop shop;
  CHECK(build_anew("bit flips"));
  const std::string path = shop.entry();
  const std::string whole = read_text(path);
  const std::string key = whole.substr(
      answer_object(42).size(), whole.size() - answer_object(42).size() - 32);
  const KernelCache cache = KernelCache::open();
  CHECK(cache.load(key) == answer_object(42));
  CapturedStderr captured;
  std::size_t flips = 0;
  for (std::size_t at = 0; at < whole.size(); at += at % 3 == 0 ? 97 : 1) {
    std::string flipped = whole;
    flipped[at] = char(flipped[at] ^ (1 << at % 8));
    write_text(path, flipped);
    ++flips;
    if (cache.load(key).has_value()) FAIL("a flip at " << at << " passed");
  }
  CHECK(warning_lines(captured.stop()) == flips);
  check_replaced("one flip", "its checksum does not match",
                 [](const auto& entry) {
                   std::string text = read_text(entry);
                   text[100] = char(text[100] ^ 4);
                   write_text(entry, text);
                 });
}

TEST_CASE("an entry under another key's name is not taken") {
  const Workshop shop;
  CHECK(build_anew("this"));
  const std::string first = shop.entry();
  CHECK(build_anew("that"));
  const Names names = names_in(shop.cache);
  const std::string second =
      shop.cache + "/" +
      (shop.cache + "/" + names[0] == first ? names[1] : names[0]);
  fs::rename(first, shop.dir / "kept");
  fs::rename(second, first);
  fs::rename(shop.dir / "kept", second);
  std::string warnings;
  CHECK(build_anew("this", &warnings));
  CHECK(warning_lines(warnings) == 1);
  CHECK(contains(warnings, "it belongs to another kernel"));
  CHECK(build_anew("that", &warnings));
  CHECK(warning_lines(warnings) == 1);
  CHECK(shop.runs() == 4);
}

TEST_CASE("an entry that others could have written is not taken") {
  check_replaced("writable by all", "others can write to it",
                 [](const auto& path) { chmod(path.c_str(), 0602); });
  check_replaced("writable by the group", "others can write to it",
                 [](const auto& path) { chmod(path.c_str(), 0620); });
  check_replaced("link", "it is a symbolic link", [](const auto& path) {
    fs::rename(path, path + ".moved");
    fs::create_symlink(path + ".moved", path);
    // The moved file is no entry, so one entry remains visible.
  });
}

TEST_CASE("an entry of another user is not taken" * doctest::skip(!is_root())) {
  check_replaced("planted", "it belongs to another user", [](const auto& path) {
    CHECK(chown(path.c_str(), 12345, 12345) == 0);
  });
}

TEST_CASE("a named pipe in the place of an entry stops nobody") {
  check_replaced("pipe", "it is not a regular file", [](const auto& path) {
    fs::remove(path);
    CHECK(mkfifo(path.c_str(), 0600) == 0);
  });
}

TEST_CASE("a folder in the place of an entry is lived with") {
  const Workshop shop;
  CHECK(build_anew("folder"));
  const std::string entry = shop.entry();
  fs::remove(entry);
  fs::create_directories(entry + "/full");
  std::string warnings;
  CHECK(build_anew("folder", &warnings));
  CHECK(contains(warnings, "it is not a regular file"));
  CHECK(contains(warnings, "cannot be written: Is a directory"));
  CHECK(warning_lines(warnings) == 2);
  CHECK(names_in(shop.cache).size() == 1);
}

TEST_CASE("an entry whose object cannot be loaded is compiled again") {
  const Workshop shop;
  CHECK(build_anew("unloadable"));
  const std::string whole = read_text(shop.entry());
  const std::string key = whole.substr(
      answer_object(42).size(), whole.size() - answer_object(42).size() - 32);
  const KernelCache cache = KernelCache::open();
  {
    const auto scratch = cache.make_scratch();
    cache.store(key, "no shared object", scratch.path());
  }
  std::string warnings;
  CHECK(build_anew("unloadable", &warnings));
  CHECK(warning_lines(warnings) == 1);
  CHECK(shop.runs() == 2);
  CHECK(read_text(shop.entry()) == whole);
}

TEST_CASE("the directory is chosen by the environment") {
  const TempDir dir;
  const Env off("FUSEBOOK_CACHE_DIR", nullptr);
  const Env xdg("XDG_CACHE_HOME", dir / "xdg");
  const Env home("HOME", dir / "home");
  CHECK(fuse::cache_path() == dir / "xdg/fusebook");
  {
    const Env chosen("FUSEBOOK_CACHE_DIR", dir / "chosen//");
    CHECK(fuse::cache_path() == dir / "chosen");
  }
  {
    const Env relative("FUSEBOOK_CACHE_DIR", "folder");
    CHECK(fuse::cache_path() == (fs::current_path() / "folder").string());
  }
  for (const char* const none : {"off", ""}) {
    const Env chosen("FUSEBOOK_CACHE_DIR", none);
    CHECK(fuse::cache_path().empty());
  }
  for (const char* const unusable : {"", "relative/folder"}) {
    const Env relative("XDG_CACHE_HOME", unusable);
    CHECK(fuse::cache_path() == dir / "home/.cache/fusebook");
  }
  const Env no_xdg("XDG_CACHE_HOME", nullptr);
  CHECK(fuse::cache_path() == dir / "home/.cache/fusebook");
  const Env no_home("HOME", "not/absolute");
  const std::string from_database = fuse::cache_path();
  CHECK(from_database.ends_with("/.cache/fusebook"));
  CHECK(from_database.starts_with("/"));
}

TEST_CASE("a missing directory is made, with its parents, for its owner") {
  const Workshop shop;
  const Env deep("FUSEBOOK_CACHE_DIR", shop.dir / "a/b/c");
  CHECK(build_anew("deep"));
  for (const char* const part : {"a", "a/b", "a/b/c"}) {
    struct stat status = {};
    CHECK(stat((shop.dir / part).c_str(), &status) == 0);
    CHECK((status.st_mode & 0777) == 0700);
  }
  CHECK(names_in(shop.dir / "a/b/c").size() == 1);
}

TEST_CASE("a cache that is switched off leaves nothing") {
  const Workshop shop;
  for (const char* const off : {"off", ""}) {
    const Env env("FUSEBOOK_CACHE_DIR", off);
    std::string warnings;
    CHECK(build_anew("off", &warnings));
    CHECK(warnings.empty());
  }
  CHECK(shop.runs() == 2);
  CHECK_FALSE(fs::exists(shop.cache));
  CHECK(names_in(shop.dir / "tmp").empty());
}

TEST_CASE("a directory that cannot be trusted is not used") {
  const Workshop shop;
  const std::string open_to_all = shop.dir / "open";
  fs::create_directory(open_to_all);
  chmod(open_to_all.c_str(), 0777);
  check_unusable(shop, open_to_all, "is writable by others (mode 777");
  const std::string group = shop.dir / "group";
  fs::create_directory(group);
  chmod(group.c_str(), 0770);
  check_unusable(shop, group, "is writable by others (mode 770");
  const std::string target = shop.dir / "target";
  fs::create_directory(target);
  chmod(target.c_str(), 0700);
  fs::create_directory_symlink(target, shop.dir / "link");
  check_unusable(shop, shop.dir / "link", "is a symbolic link");
  CHECK(names_in(open_to_all).empty());
  CHECK(names_in(target).empty());
}

TEST_CASE("a directory of another user is not used" *
          doctest::skip(!is_root())) {
  const Workshop shop;
  const std::string planted = shop.dir / "planted";
  fs::create_directory(planted);
  chmod(planted.c_str(), 0755);
  REQUIRE(chown(planted.c_str(), 12345, 12345) == 0);
  check_unusable(shop, planted, "belongs to user 12345, not to user 0");
  CHECK(names_in(planted).empty());
}

TEST_CASE("a directory that cannot be there is lived without") {
  const Workshop shop;
  write_text(shop.dir / "file", "");
  check_unusable(shop, shop.dir / "file", "is not a directory");
  check_unusable(shop, shop.dir / "file/below", "cannot be opened: Not a dir");
  check_unusable(shop, "/proc/fusebook", "cannot be created: ");
  check_unusable(shop, "/dev/full", "is not a directory");
}

TEST_CASE("a full disk is lived with, wherever it shows") {
  const Workshop shop;
  // The compiler finds no space beside the cache, but enough elsewhere.
  shop.write_compiler("case \"$*\" in *" + shop.cache +
                      "*) echo 'No space left on device'; exit 1;; esac\n");
  std::string warnings;
  CHECK(build_anew("full", &warnings));
  CHECK(shop.runs() == 2);
  CHECK(warning_lines(warnings) == 1);
  CHECK(contains(warnings, "'" + shop.cache + "' cannot hold"));
  CHECK(names_in(shop.cache).empty());
  CHECK(names_in(shop.dir / "tmp").empty());
}

TEST_CASE("an entry that cannot be written whole is not left behind") {
  const Workshop shop;
  // An entry is longer than the object alone: only the former hits the limit.
  const std::string source(30000, '/');
  CHECK(run_child([&] {
          const rlim_t limit =
              std::max(answer_object(42).size(), source.size()) + 100;
          const rlimit small = {limit, limit};
          setrlimit(RLIMIT_FSIZE, &small);
          std::string warnings;
          if (!build_anew(source, &warnings)) return 1;
          if (!contains(warnings, "cannot be written: File too large")) {
            return 2;
          }
          return names_in(shop.cache).empty() ? 0 : 3;
        }) == 0);
  CHECK(shop.runs() == 1);
  CHECK(names_in(shop.cache).empty());
}

TEST_CASE("where memory files are refused, a private file is loaded") {
  const Workshop shop;
  CHECK(build_anew("refused"));
  const int outcome = run_child([] {
    if (!forbid_memory_files()) return 77;
    if (memfd_create("refused", 0) != -1) return 1;
    return build_anew("refused") && build_anew("refused too") ? 0 : 2;
  });
  if (outcome == 77) {
    MESSAGE("this system lets nobody filter system calls: not tested");
    return;
  }
  CHECK(outcome == 0);
  CHECK(shop.runs() == 2);
  CHECK(names_in(shop.dir / "tmp").empty());
  CHECK(names_in(shop.cache).size() == 2);
}

TEST_CASE("eight processes race for one cold key") {
  const Workshop shop;
  shop.write_compiler("sleep 0.05\n");
  std::vector<pid_t> children;
  for (int i = 0; i < 8; ++i) {
    children.push_back(start_child([] {
      std::string warnings;
      return build_anew("raced", &warnings) && warnings.empty() ? 0 : 1;
    }));
  }
  for (const pid_t child : children) CHECK(wait_for(child) == 0);
  CHECK(shop.runs() >= 1);
  CHECK(shop.runs() <= 8);
  const std::size_t runs = shop.runs();
  CHECK(build_anew("raced"));
  CHECK(shop.runs() == runs);
  CHECK(names_in(shop.cache).size() == 1);
}

TEST_CASE("what interrupted processes left is swept, and nothing else") {
  const Workshop shop;
  CHECK(build_anew("before the sweep"));
  // The name of a scratch directory of a process that has ended.
  const pid_t child = start_child([&] {
    const auto cache = KernelCache::open();
    write_text(shop.dir / "name", cache.make_scratch().path());
    return 0;
  });
  CHECK(wait_for(child) == 0);
  const std::string dead = read_text(shop.dir / "name");
  const auto live = KernelCache::open().make_scratch();
  const std::string elsewhere = shop.cache + "/fusebook-00000000-1-abcdef";
  const std::string old = shop.cache + "/fusebook-00000000-1-ghijkl";
  const std::string not_ours = shop.cache + "/notes";
  for (const auto& folder : {dead, elsewhere, old, not_ours}) {
    fs::create_directory(folder);
    write_text(folder + "/kernel.cpp", "left");
  }
  const std::time_t long_ago = std::time(nullptr) - 7200;
  for (const auto& folder : {old, not_ours}) {
    const utimbuf times = {long_ago, long_ago};
    CHECK(utime(folder.c_str(), &times) == 0);
  }
  fuse::sweep_scratch(shop.cache);
  CHECK_FALSE(fs::exists(dead));
  CHECK_FALSE(fs::exists(old));
  CHECK(fs::exists(live.path()));
  CHECK(fs::exists(elsewhere));
  CHECK(fs::exists(not_ours));
  CHECK(build_anew("before the sweep"));
  CHECK(shop.runs() == 1);
}

TEST_CASE("the first compilation in a process sweeps") {
  const Workshop shop;
  CHECK(build_anew("one"));
  const std::string old = shop.cache + "/fusebook-00000000-1-abcdef";
  fs::create_directory(old);
  const std::time_t long_ago = std::time(nullptr) - 7200;
  const utimbuf times = {long_ago, long_ago};
  CHECK(utime(old.c_str(), &times) == 0);
  // This process has swept already; a new one has not. (Topics seen are
  // inherited by a fork, so another spelling of the path stands for it.)
  const Env env("FUSEBOOK_CACHE_DIR", shop.dir / "./cache");
  CHECK(build_anew("two"));
  CHECK_FALSE(fs::exists(old));
}

TEST_CASE("the cache can be looked at and cleared") {
  const Workshop shop;
  CHECK(fuse::summarize_disk_cache().directory == shop.cache);
  CHECK(fuse::summarize_disk_cache().entries == 0);
  CHECK(fuse::clear_disk_cache() == 0);
  CHECK_FALSE(fs::exists(shop.cache));
  CHECK(build_anew("one"));
  CHECK(build_anew("two"));
  write_text(shop.cache + "/notes.txt", "not ours");
  write_text(shop.cache + "/0123456789abcdeg.fbk", "not ours");
  long long bytes = 0;
  for (const std::string& name : names_in(shop.cache)) {
    if (name.size() == 20 && name[15] != 'g') {
      bytes += static_cast<long long>(fs::file_size(shop.cache + "/" + name));
    }
  }
  const auto summary = fuse::summarize_disk_cache();
  CHECK(summary.entries == 2);
  CHECK(summary.bytes == bytes);
  CHECK(summary.problem.empty());
  CHECK(fuse::clear_disk_cache() == 2);
  CHECK(fuse::summarize_disk_cache().entries == 0);
  CHECK(names_in(shop.cache).size() == 2);
  CHECK(build_anew("one"));
  CHECK(shop.runs() == 3);
  const Env off("FUSEBOOK_CACHE_DIR", "off");
  CHECK(fuse::summarize_disk_cache().directory.empty());
  CHECK(fuse::clear_disk_cache() == 0);
}

TEST_CASE("a directory that cannot be used is neither read nor cleared") {
  const Workshop shop;
  write_text(shop.dir / "file", "");
  const Env env("FUSEBOOK_CACHE_DIR", shop.dir / "file");
  CHECK(fuse::summarize_disk_cache().problem == "is not a directory");
  CHECK_THROWS_WITH_AS(fuse::clear_disk_cache(),
                       doctest::Contains("is not a directory"), fuse::Error);
}

TEST_CASE("hashes tell neighbours apart") {
  CHECK(fuse::hex_digits(0) == "0000000000000000");
  CHECK(fuse::hex_digits(0x0123456789abcdefU) == "0123456789abcdef");
  std::vector<std::uint64_t> seen;
  for (std::size_t size = 0; size < 300; ++size) {
    seen.push_back(fuse::content_hash(std::string(size, '\0')));
    seen.push_back(fuse::content_hash(std::string(size, '\0'), 1));
    std::string text(size, 'a');
    for (std::size_t at = 0; at < size; at += 7) {
      text[at] = 'b';
      seen.push_back(fuse::content_hash(text));
    }
  }
  std::sort(seen.begin(), seen.end());
  CHECK(std::adjacent_find(seen.begin(), seen.end()) == seen.end());
}

TEST_CASE("a warning is one line, each text once") {
  CapturedStderr captured;
  fuse::warn_once("the first text of this test");
  fuse::warn_once("the first text of this test");
  fuse::warn_once("the second text of this test");
  CHECK(captured.stop() ==
        "fusebook: warning: the first text of this test\n"
        "fusebook: warning: the second text of this test\n");
}
