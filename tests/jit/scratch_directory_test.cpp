// Scratch directories: private, gone at the end, and swept by the next process
// when their own could not, whoever still writes into them.
#include "fusebook/jit/scratch_directory.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <string>
#include <vector>

#include "support/jit_testing.h"

using fuse::ScratchDirectory;
using namespace jit_testing;

namespace {

// Makes a scratch directory in `parent` and ends without removing it.
std::string abandon_scratch(const std::string& parent) {
  const std::string note = parent + "-note";
  REQUIRE(run_child([&] {
            const ScratchDirectory scratch(parent);
            write_text(note, scratch.path());
            write_text(scratch.path() + "/kernel.cpp", "int x;");
            _exit(0);
            return 1;
          }) == 0);
  return read_text(note);
}

// Compilers that outlive their process: they make files in `folder`, by their
// paths, for as long as it is there.
class Writers {
 public:
  explicit Writers(const std::string& folder) {
    for (char name = 'a'; name < 'a' + count; ++name) {
      const std::string own = folder + "/" + name;
      writers_.push_back(start_child([&] { return write_into(own); }));
    }
    const std::string last = folder + "/" + char('a' + count - 1) + "100";
    while (!fs::exists(last)) usleep(1000);
  }
  ~Writers() {
    for (const pid_t writer : writers_) CHECK(wait_for(writer) == 0);
  }
  Writers(const Writers&) = delete;
  Writers& operator=(const Writers&) = delete;

 private:
  static constexpr int count = 4;

  static int write_into(const std::string& start) {
    alarm(20);  // a folder that stays is a failure, not a hang
    for (unsigned i = 0;; ++i) {
      const std::string path = start + std::to_string(i % 2000);
      const int file = open(path.c_str(), O_WRONLY | O_CREAT, 0600);
      if (file < 0) return errno == ENOENT ? 0 : 1;
      close(file);
    }
  }

  std::vector<pid_t> writers_;
};

}  // namespace

TEST_CASE("a scratch directory is private and goes with all it holds") {
  const TempDir dir;
  {
    const ScratchDirectory scratch(dir.path());
    struct stat status = {};
    REQUIRE(stat(scratch.path().c_str(), &status) == 0);
    CHECK((status.st_mode & 0777U) == 0700U);
    fs::create_directories(scratch.path() + "/a/b");
    write_text(scratch.path() + "/a/b/c", "text");
    ScratchDirectory moved(ScratchDirectory(dir.path()));
    CHECK(names_in(dir.path()).size() == 2);
  }
  CHECK(names_in(dir.path()).empty());
}

TEST_CASE("none is made where there is no room") {
  const TempDir dir;
  CHECK(ScratchDirectory(dir / "missing").path().empty());
  CHECK(errno == ENOENT);
  CHECK(ScratchDirectory().path().empty());
}

TEST_CASE("what a dead process left is swept, what a living one has is not") {
  const TempDir dir;
  fs::create_directory(dir / "cache");
  const ScratchDirectory living(dir / "cache");
  const std::string left = abandon_scratch(dir / "cache");
  REQUIRE(fs::exists(left));
  fuse::sweep_scratch(dir / "cache");
  CHECK(!fs::exists(left));
  CHECK(names_in(dir / "cache").size() == 1);
  CHECK(fs::exists(living.path()));
}

TEST_CASE("swept although compilers keep writing into it") {
  for (int i = 0; i < 10; ++i) {
    const TempDir dir;
    fs::create_directory(dir / "cache");
    const Writers writers(abandon_scratch(dir / "cache"));
    fuse::sweep_scratch(dir / "cache");
    CHECK(names_in(dir / "cache").empty());
  }
}

TEST_CASE("removed at the end although compilers keep writing into it") {
  const TempDir dir;
  std::optional<Writers> writers;
  {
    const ScratchDirectory scratch(dir.path());
    writers.emplace(scratch.path());
  }
  CHECK(names_in(dir.path()).empty());
}

TEST_CASE("what a sweeper was killed over is swept by the next one") {
  const TempDir dir;
  fs::create_directory(dir / "cache");
  std::string left = abandon_scratch(dir / "cache");
  std::string half_swept = left;
  half_swept.replace(half_swept.size() - 6, 6, "_00000");
  fs::rename(left, half_swept);
  fuse::sweep_scratch(dir / "cache");
  CHECK(names_in(dir / "cache").empty());
}
