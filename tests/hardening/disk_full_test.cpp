// The disk is full, or fails, at any one call; or it has so many bytes; or
// files may only grow so long. The result is right, or there is one clear
// error; nothing half-written stays.
#include <dlfcn.h>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstring>
#include <string>
#include <vector>

#include "fusebook/checkpoint/checkpoint.h"
#include "fusebook/jit/host_compiler.h"
#include "fusebook/jit/jit.h"
#include "fusebook/jit/loaded_libraries.h"
#include "fusebook/support/error.h"
#include "support/answer_object.h"
#include "worker.h"

namespace {

// The calls that need room on a disk are counted, and those from `first` to
// `last` fail. Only the thread that armed it is disturbed.
struct Fault {
  bool armed = false;
  int count = 0;
  int first = -1;
  int last = -1;
  int error = 0;
};
Fault fault;

bool fails() {
  if (!fault.armed) return false;
  const int number = fault.count++;
  if (number < fault.first || number > fault.last) return false;
  errno = fault.error;
  return true;
}

}  // namespace

// This program's own definitions go before those of the C library.
extern "C" {

ssize_t write(int fd, const void* bytes, size_t size) {
  if (fails()) {
    // Half of it still found room; the next call finds none.
    if (size < 2) return -1;
    fault.last = fault.last > fault.count ? fault.last : fault.count;
    size /= 2;
  }
  return syscall(SYS_write, fd, bytes, size);
}

int open(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  if ((flags & O_CREAT) != 0 && fails()) return -1;
  return int(syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}

int mkdir(const char* path, mode_t mode) noexcept {
  if (fails()) return -1;
  return int(syscall(SYS_mkdirat, AT_FDCWD, path, mode));
}

char* mkdtemp(char* name) noexcept {
  if (fails()) return nullptr;
  using Function = char* (*)(char*);
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, "mkdtemp"))(name);
}

int renameat(int from, const char* old_name, int to,
             const char* new_name) noexcept {
  if (fails()) return -1;
  return int(syscall(SYS_renameat2, from, old_name, to, new_name, 0));
}

int rename(const char* old_name, const char* new_name) noexcept {
  if (fails()) return -1;
  return int(syscall(SYS_renameat2, AT_FDCWD, old_name, AT_FDCWD, new_name, 0));
}

int fsync(int fd) {
  if (fails()) return -1;
  return int(syscall(SYS_fsync, fd));
}

int memfd_create(const char* name, unsigned flags) noexcept {
  if (fails()) return -1;
  return int(syscall(SYS_memfd_create, name, flags));
}

}  // extern "C"

using namespace hardening;

namespace {

// A cold cache, and a compiler made of shell that answers 42.
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
    write_script(dir / "cc",
                 "while [ \"$1\" != -o ]; do shift; done\n"
                 "cp '" +
                     dir / "object" + "' \"$2\"\n");
  }
};

struct Built {
  int answer = 0;
  std::string error;
  std::string warnings;
};

Built build(const Fault& with) {
  fuse::forget_libraries();
  Built built;
  CapturedStderr captured;
  fault = with;
  fault.armed = true;
  try {
    const auto library = fuse::build_library("some source");
    fault.armed = false;
    built.answer = reinterpret_cast<int (*)()>(library->symbol("answer"))();
  } catch (const fuse::Error& error) {
    fault.armed = false;
    built.error = error.what();
  }
  built.warnings = captured.stop();
  return built;
}

// What was wrong after the fault and in the run after it; empty: nothing.
class Findings {
 public:
  void expect(bool holds, const char* what) {
    if (!holds) text_ += std::string("\n  not so: ") + what;
  }
  void add(const char* name, const std::string& value) {
    if (!text_.empty()) text_ += std::string("\n  ") + name + ": " + value;
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

// The first call that fails and all after it, or that one alone.
enum class Extent { once, for_ever };

std::string problems_after(const Fault& with, Extent extent) {
  const Workshop shop;
  const Built built = build(with);
  Findings findings;
  findings.expect(warnings_in(built.warnings) <= 1, "one warning at most");
  findings.expect(warnings_in(built.warnings) >= 0, "nothing but warnings");
  if (extent == Extent::once) {
    findings.expect(built.answer == 42, "one failing call is lived with");
  } else {
    findings.expect(built.answer == 42 || contains(built.error, "annot"),
                    "right, or an error that says what cannot be done");
  }
  findings.expect(strangers_in(shop.cache).empty(), "a tidy cache");
  findings.expect(names_in(shop.dir / "tmp").empty(), "no temporaries");
  findings.add("error", built.error);
  findings.add("warnings", built.warnings);

  const Built next = build({});
  findings.expect(next.answer == 42, "the next run is right");
  findings.expect(next.warnings.empty(), "it has nothing to say");
  findings.expect(names_in(shop.cache).size() == 1, "it leaves its entry");
  findings.expect(names_in(shop.dir / "tmp").empty(), "and nothing else");
  findings.add("the next run", next.error + next.warnings);
  return findings.text();
}

// Warnings come once in a process, so every case is a process of its own.
void check_fault(Fault with, Extent extent) {
  if (extent == Extent::for_ever) with.last = 1 << 30;
  const TempDir notes;
  CHECK(run_child([&] {
          write_text(notes / "problems", problems_after(with, extent));
          return 0;
        }) == 0);
  const std::string problems = read_text(notes / "problems");
  if (problems.empty()) return;
  FAIL_CHECK("call " << with.first << " to " << with.last << ", "
                     << strerror(with.error) << ":" << problems);
}

// The number of calls in a run that nothing disturbs.
int undisturbed_calls() {
  const Workshop shop;
  CHECK(build({}).answer == 42);
  return fault.count;
}

// ---- checkpoints ------------------------------------------------------------

// A model saved once, and then again over it while the disk fails.
class Saving {
 public:
  Saving() {
    fuse::save_tensors(path_, {{"weight", fuse::full({300}, 1)}});
    old_ = read_text(path_);
  }
  /// What the second save says; the number of its calls is in `fault`.
  std::string save(const Fault& with) {
    fault = with;
    fault.armed = true;
    std::string message;
    try {
      fuse::save_tensors(path_, {{"weight", fuse::full({300}, 2)}});
    } catch (const fuse::Error& error) {
      message = error.what();
    }
    fault.armed = false;
    return message;
  }
  bool is_old() const { return read_text(path_) == old_; }
  bool is_new() const {
    const fuse::Tensor weight = fuse::zeros({300});
    fuse::load_tensors(path_, {{"weight", weight}});
    return fuse::bitwise_equal(weight, fuse::full({300}, 2));
  }
  bool is_alone() const { return names_in(dir_.path()).size() == 1; }

 private:
  TempDir dir_;
  std::string path_ = dir_ / "model";
  std::string old_;
};

int undisturbed_saving_calls() {
  Saving saving;
  CHECK(saving.save({}).empty());
  CHECK(saving.is_new());
  return fault.count;
}

constexpr int kept = 10;
constexpr int not_kept = 11;

// Runs the worker with a cache on `disk`, a file system of its own. Returns
// whether its kernel was kept, and writes what was wrong into `problems`.
int run_with_room(const TempDir& dir, const std::string& disk,
                  std::string* problems) {
  const std::string cache = dir / "cache";
  if (!leave_file_systems() || !mount_memory(cache, disk)) {
    *problems = "no file system of its own";
    return not_possible_here;
  }
  Surroundings around;
  around.variables = {{"FUSEBOOK_CACHE_DIR", cache}, {"TMPDIR", dir / "tmp"}};
  const Outcome outcome = run_worker(around, {"step"});
  Findings findings;
  findings.expect(outcome.code == 0, "the result is right");
  const long warnings = warnings_in(outcome.err);
  const bool empty = names_in(cache).empty();
  findings.expect(warnings == (empty ? 1 : 0),
                  "one warning where nothing was kept");
  findings.expect(strangers_in(cache).empty(), "a tidy cache");
  findings.expect(names_in(dir / "tmp").empty(), "no temporaries");
  findings.add("output", outcome.out + outcome.err);
  *problems = findings.text();
  return empty ? not_kept : kept;
}

// The same in a child, which takes the file system with it.
int check_room(int kilobytes) {
  CAPTURE(kilobytes);
  const TempDir dir;
  const TempDir notes;
  fs::create_directory(dir / "tmp");
  fs::create_directory(dir / "cache");
  const int outcome = run_child([&] {
    std::string problems;
    const int code = run_with_room(
        dir, "mode=700,size=" + std::to_string(kilobytes) + "k", &problems);
    write_text(notes / "problems", problems);
    return code;
  });
  CHECK(read_text(notes / "problems") == "");
  return outcome;
}

}  // namespace

TEST_CASE("every call that needs room fails, one after the other") {
  const int calls = undisturbed_calls();
  CHECK(calls >= 8);
  for (const int error : {ENOSPC, EDQUOT, EIO, EROFS}) {
    for (int call = 0; call < calls; ++call) {
      check_fault({false, 0, call, call, error}, Extent::once);
    }
  }
}

TEST_CASE("from any call on, the disk stays full") {
  const int calls = undisturbed_calls();
  for (int call = 0; call < calls; ++call) {
    check_fault({false, 0, call, call, ENOSPC}, Extent::for_ever);
  }
}

TEST_CASE("a checkpoint that cannot be written leaves the old one") {
  const int calls = undisturbed_saving_calls();
  // Opening, writing header and numbers, syncing, renaming, syncing the folder.
  CHECK(calls == 6);
  for (const int error : {ENOSPC, EDQUOT, EIO, EROFS}) {
    for (int call = 0; call < calls; ++call) {
      CAPTURE(strerror(error));
      CAPTURE(call);
      Saving saving;
      const std::string message = saving.save({false, 0, call, call, error});
      // The folder is synced when all is done.
      const bool late = call == calls - 1;
      CHECK(message.empty() == late);
      CHECK(saving.is_alone());
      CHECK((late ? saving.is_new() : saving.is_old()));
      if (late) continue;
      CHECK(contains(message, "cannot write '"));
      CHECK(contains(message, strerror(error)));
      CHECK(saving.save({}).empty());
      CHECK(saving.is_new());
    }
  }
}

TEST_CASE("a checkpoint larger than files may be leaves the old one") {
  const int code = run_child([] {
    Saving saving;
    const rlimit limit = {1000, 1000};
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return not_possible_here;
    const std::string message = saving.save({});
    return contains(message, strerror(EFBIG)) && saving.is_old() &&
                   saving.is_alone()
               ? 0
               : 1;
  });
  CHECK((code == 0 || code == not_possible_here));
}

TEST_CASE("a cache on a disk of any size" * doctest::skip(!can_mount())) {
  const int step = sized(64, 8);
  CHECK(check_room(4) == not_kept);
  for (int kilobytes = step; kilobytes <= 456; kilobytes += step) {
    const int outcome = check_room(kilobytes);
    CHECK((outcome == kept || outcome == not_kept));
  }
  CHECK(check_room(1 << 16) == kept);
}

TEST_CASE("a limit on the size of files, of any size") {
  const int step = sized(24, 4);
  for (int kilobytes = 4; kilobytes < 120; kilobytes += step) {
    CAPTURE(kilobytes);
    const TempDir dir;
    fs::create_directory(dir / "tmp");
    Surroundings around;
    around.variables = {{"FUSEBOOK_CACHE_DIR", dir / "cache"},
                        {"TMPDIR", dir / "tmp"}};
    Surroundings limited = around;
    limited.prepare = [&] {
      const rlim_t bytes = rlim_t(kilobytes) * 1024;
      const rlimit limit = {bytes, bytes};
      return setrlimit(RLIMIT_FSIZE, &limit) == 0;
    };
    const Outcome outcome = run_worker(limited, {"step"});
    if (outcome.code == 3) {
      CHECK(contains(outcome.err, "error: "));
    } else {
      CHECK(outcome.code == 0);
      CHECK(warnings_in(outcome.err) <= 1);
    }
    CHECK(strangers_in(dir / "cache").empty());
    CHECK(names_in(dir / "tmp").empty());
    const Outcome next = run_worker(around, {"step"});
    CHECK(next.code == 0);
    CHECK(next.err.empty());
  }
}
