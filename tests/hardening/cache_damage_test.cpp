// Entries of the cache that are not what they should be: damaged, exchanged,
// made for another machine, planted by another user. And the key: whatever
// changes in it alone, the old entry is not taken.
#include <doctest/doctest.h>
#include <sys/stat.h>

#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "fusebook/jit/disk_cache.h"
#include "fusebook/jit/host_compiler.h"
#include "fusebook/jit/instruction_set.h"
#include "fusebook/jit/jit.h"
#include "fusebook/jit/loaded_libraries.h"
#include "support/answer_object.h"
#include "support/testing.h"
#include "worker.h"

using namespace hardening;
using fuse::KernelCache;

namespace {

constexpr int right = 42;
constexpr int poisoned = 666;

// A cache of its own, and a compiler made of shell that notes its runs and
// gives the right answer whatever the source.
struct Workshop {
  TempDir dir;
  std::string cache = dir / "cache";
  Env cache_dir{"FUSEBOOK_CACHE_DIR", cache};
  Env tmpdir{"TMPDIR", dir / "tmp"};
  Env cxx{"FUSEBOOK_CXX", dir / "cc"};

  Workshop() {
    fs::create_directory(dir / "tmp");
    write_text(dir / "object", answer_object(right));
    write_compiler(dir / "cc");
  }
  void write_compiler(const std::string& path) const {
    write_script(path, "echo ran >> '" + dir / "log" + "'\n" +
                           "while [ \"$1\" != -o ]; do shift; done\n" + "cp '" +
                           dir / "object" + "' \"$2\"\n");
  }
  std::size_t runs() const { return count_of(read_text(dir / "log"), "ran"); }
  std::string entry_of(const std::string& key) const {
    return cache + "/" + fuse::entry_name(key);
  }
};

struct Built {
  int answer = 0;
  std::string warnings;
};

// Builds as a process that has never seen the source.
Built build(const std::string& source) {
  fuse::forget_libraries();
  CapturedStderr captured;
  const auto library = fuse::build_library(source);
  const auto answer = reinterpret_cast<int (*)()>(library->symbol("answer"));
  return {answer(), captured.stop()};
}

// Builds anew; expects the right answer and so many warnings with that reason.
void check_built(const std::string& source, long warnings,
                 const std::string& reason) {
  CAPTURE(reason);
  const Built built = build(source);
  CHECK(built.answer == right);
  CHECK(warnings_in(built.warnings) == warnings);
  CHECK(contains(built.warnings, reason));
}

std::string only_entry(const Workshop& shop) {
  const auto names = names_in(shop.cache);
  REQUIRE(names.size() == 1);
  return shop.cache + "/" + names[0];
}

// The key of an entry: what lies between the object and the last 32 bytes.
std::string key_of(const std::string& entry) {
  const std::string whole = read_text(entry);
  const std::size_t begin = answer_object(right).size();
  return whole.substr(begin, whole.size() - begin - 32);
}

void store(const std::string& key, const std::string& object) {
  const KernelCache cache = KernelCache::open();
  const auto scratch = cache.make_scratch();
  cache.store(key, object, scratch.path());
}

// A source that makes an entry of many pages.
std::string long_source() { return std::string(60000, '/'); }

std::string replaced(std::string text, const std::string& from,
                     const std::string& to) {
  const std::size_t at = text.find(from);
  REQUIRE(at != text.npos);
  return text.replace(at, from.size(), to);
}

std::vector<std::string> words_of(const std::string& text) {
  return fuse::split_words(text, "a line");
}

// The line of a key that starts so, without its start.
std::string line_of(const std::string& key, const std::string& start) {
  const std::size_t begin = key.find(start) + start.size();
  return key.substr(begin, key.find('\n', begin) - begin);
}

void set_mtime(const std::string& path, const timespec& time) {
  const timespec times[] = {{0, UTIME_OMIT}, time};
  REQUIRE(utimensat(AT_FDCWD, path.c_str(), times, 0) == 0);
}

timespec mtime_of(const std::string& path) {
  struct stat status = {};
  REQUIRE(stat(path.c_str(), &status) == 0);
  return status.st_mtim;
}

// The compiler is the link `cc`; after `change` the old entry must not be
// taken, and the new one must.
void check_misses(const char* what,
                  const std::function<void(const Workshop&)>& change) {
  CAPTURE(what);
  const Workshop shop;
  fs::rename(shop.dir / "cc", shop.dir / "real");
  fs::create_hard_link(shop.dir / "real", shop.dir / "twin");
  fs::create_symlink("real", shop.dir / "cc");
  CHECK(build("key").answer == right);
  CHECK(build("key").answer == right);
  CHECK(shop.runs() == 1);
  change(shop);
  CHECK(build("key").answer == right);
  CHECK(shop.runs() == 2);
  CHECK(build("key").answer == right);
  CHECK(shop.runs() == 2);
}

}  // namespace

TEST_CASE("truncated at every 4 KiB, and around each of its parts") {
  const Workshop shop;
  const std::string source = long_source();
  check_built(source, 0, "");
  const std::string entry = only_entry(shop);
  const std::string whole = read_text(entry);
  const std::size_t object = answer_object(right).size();
  std::vector<std::size_t> lengths = {1,
                                      object - 1,
                                      object,
                                      object + 1,
                                      whole.size() - 33,
                                      whole.size() - 32,
                                      whole.size() - 31,
                                      whole.size() - 8,
                                      whole.size() - 1};
  for (std::size_t at = 0; at < whole.size(); at += 4096) lengths.push_back(at);
  CHECK(lengths.size() > 20);
  for (const std::size_t length : lengths) {
    CAPTURE(length);
    fs::resize_file(entry, length);
    check_built(source, 1, "it is truncated");
    check_built(source, 0, "");
    CHECK(read_text(entry) == whole);
  }
  CHECK(shop.runs() == 1 + lengths.size());
}

TEST_CASE("a thousand random flips of a bit") {
  const Workshop shop;
  const std::string source = long_source();
  check_built(source, 0, "");
  const std::string entry = only_entry(shop);
  const std::string key = key_of(entry);
  const std::string whole = read_text(entry);
  const KernelCache cache = KernelCache::open();
  CHECK(cache.load(key) == answer_object(right));
  testing::Random random(20240229);
  long taken = 0;
  CapturedStderr captured;
  for (int i = 0; i < 1000; ++i) {
    std::string flipped = whole;
    char& byte = flipped[random.bits() % flipped.size()];
    byte = char(byte ^ (1 << random.below(8)));
    write_text(entry, flipped);
    if (cache.load(key)) ++taken;
  }
  CHECK(warnings_in(captured.stop()) == 1000);
  CHECK(taken == 0);
  check_built(source, 1, "cannot be used (");
  check_built(source, 0, "");
}

TEST_CASE("the entries of eight kernels go round in a ring") {
  const Workshop shop;
  std::vector<std::string> keys;
  for (int i = 0; i < 8; ++i) {
    check_built("ring " + std::to_string(i), 0, "");
    keys.push_back("ring " + std::to_string(i));
  }
  const std::string prefix =
      replaced(key_of(shop.cache + "/" + names_in(shop.cache)[0]), "ring", "");
  for (std::string& key : keys) {
    key = prefix.substr(0, prefix.size() - 2) + key;
    REQUIRE(fs::exists(shop.entry_of(key)));
  }
  fs::rename(shop.entry_of(keys[0]), shop.dir / "first");
  for (std::size_t i = 1; i < keys.size(); ++i) {
    fs::rename(shop.entry_of(keys[i]), shop.entry_of(keys[i - 1]));
  }
  fs::rename(shop.dir / "first", shop.entry_of(keys.back()));
  for (int i = 0; i < 8; ++i) {
    check_built("ring " + std::to_string(i), 1, "it belongs to another kernel");
    check_built("ring " + std::to_string(i), 0, "");
  }
  CHECK(shop.runs() == 16);
}

TEST_CASE("whatever changes about the compiler alone, the kernel is compiled") {
  check_misses("its own path", [](const Workshop& shop) {
    fs::create_symlink("real", shop.dir / "other");
    setenv("FUSEBOOK_CXX", (shop.dir / "other").c_str(), 1);
  });
  check_misses("the path behind a link", [](const Workshop& shop) {
    fs::remove(shop.dir / "cc");
    fs::create_symlink("twin", shop.dir / "cc");
  });
  check_misses("its size", [](const Workshop& shop) {
    const timespec time = mtime_of(shop.dir / "real");
    std::ofstream(shop.dir / "real", std::ios::app) << "\n";
    set_mtime(shop.dir / "real", time);
  });
  check_misses("when it was changed", [](const Workshop& shop) {
    timespec time = mtime_of(shop.dir / "real");
    --time.tv_sec;
    set_mtime(shop.dir / "real", time);
  });
  check_misses("its inode", [](const Workshop& shop) {
    const timespec time = mtime_of(shop.dir / "real");
    fs::copy_file(shop.dir / "real", shop.dir / "copy");
    set_mtime(shop.dir / "copy", time);
    fs::rename(shop.dir / "copy", shop.dir / "real");
  });
  check_misses("a word after it", [](const Workshop& shop) {
    setenv("FUSEBOOK_CXX", (shop.dir / "cc" + " -g").c_str(), 1);
  });
}

TEST_CASE("every part of the key counts") {
  const Workshop shop;
  check_built("the source", 0, "");
  const std::string entry = only_entry(shop);
  const std::string key = key_of(entry);
  CHECK(key.starts_with("Fusebook kernel, format 1\n"));
  CHECK(key.ends_with("\nsource:\nthe source"));
  CHECK(line_of(key, "instruction set: ") == fuse::instruction_set());
  CHECK(words_of(line_of(key, "flags:")) == fuse::compile_flags());

  std::vector<std::string> others = {replaced(key, "format 1", "format 2"),
                                     replaced(key, "the source", "the sourcf"),
                                     key + " "};
  for (const std::string& flag : fuse::compile_flags()) {
    others.push_back(replaced(key, " " + flag, ""));
  }
  for (const std::string& word : words_of(fuse::instruction_set())) {
    others.push_back(replaced(key, word, word + "0"));
  }
  for (const char* const word :
       {" -> ", " size ", " changed ", " inode ", " device "}) {
    others.push_back(replaced(key, word, std::string(word) + "1"));
  }
  fs::remove(entry);
  for (const std::string& other : others) {
    CAPTURE(other);
    CHECK(other != key);
    // Under its own name it is no entry of this key, under this key's name it
    // is refused.
    store(other, answer_object(poisoned));
    CHECK_FALSE(KernelCache::open().load(key).has_value());
    fs::rename(shop.entry_of(other), entry);
    check_built("the source", 1, "it belongs to another kernel");
    fs::remove(entry);
  }
  CHECK(shop.runs() == 1 + others.size());
}

TEST_CASE("a kernel for another instruction set is not loaded") {
  const Workshop shop;
  check_built("elsewhere", 0, "");
  const std::string entry = only_entry(shop);
  const std::string elsewhere = replaced(key_of(entry), fuse::instruction_set(),
                                         "x86 of another machine");
  fs::remove(entry);
  store(elsewhere, answer_object(poisoned));
  check_built("elsewhere", 0, "");
  CHECK(shop.runs() == 2);
  // The other machine, which shares this cache, still has its own.
  CHECK(KernelCache::open().load(elsewhere) == answer_object(poisoned));
}

TEST_CASE("what another user plants under the right key is never loaded" *
          doctest::skip(!is_root())) {
  const Workshop shop;
  check_built("planted", 0, "");
  const std::string key = key_of(only_entry(shop));
  // The other user's own cache holds a whole entry with the right key.
  const std::string theirs = shop.dir / "theirs";
  {
    const Env env("FUSEBOOK_CACHE_DIR", theirs);
    store(key, answer_object(poisoned));
  }
  const std::string name = "/" + fuse::entry_name(key);
  REQUIRE(chown(theirs.c_str(), other_user, other_user) == 0);
  REQUIRE(chown((theirs + name).c_str(), other_user, other_user) == 0);
  const auto with_entry = [&](const char* folder, auto place) {
    const std::string path = shop.dir / folder;
    fs::create_directory(path);
    chmod(path.c_str(), 0700);
    place(theirs + name, path + name);
    return path;
  };
  const std::string moved = with_entry("moved", [](auto from, auto to) {
    fs::copy_file(from, to);
    CHECK(chown(to.c_str(), other_user, other_user) == 0);
  });
  const std::string hard = with_entry(
      "hard", [](auto from, auto to) { fs::create_hard_link(from, to); });
  const std::string soft = with_entry(
      "soft", [](auto from, auto to) { fs::create_symlink(from, to); });
  fs::create_directory_symlink(theirs, shop.dir / "link");
  const std::vector<std::pair<std::string, std::string>> plants = {
      {theirs, "belongs to user 12345"},
      {shop.dir / "link", "is a symbolic link"},
      {moved, "it belongs to another user"},
      {hard, "it belongs to another user"},
      {soft, "it is a symbolic link"}};
  for (const auto& [folder, reason] : plants) {
    CAPTURE(folder);
    const Env env("FUSEBOOK_CACHE_DIR", folder);
    check_built("planted", 1, reason);
    check_built("planted", 0, "");
  }
  CHECK(read_text(theirs + name).starts_with(answer_object(poisoned)));
}

TEST_CASE("an object that another user put in the compiler's place" *
          doctest::skip(!is_root())) {
  const Workshop shop;
  write_script(shop.dir / "cc",
               "while [ \"$1\" != -o ]; do shift; done\n"
               "cp '" +
                   shop.dir / "object" + "' \"$2\"; chown 12345 \"$2\"\n");
  CHECK_THROWS_WITH_AS(build("replaced"),
                       doctest::Contains("wrote no shared object"),
                       fuse::Error);
  CHECK(strangers_in(shop.cache).empty());
}
