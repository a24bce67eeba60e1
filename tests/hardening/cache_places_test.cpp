// Where the cache, the temporaries, the home and the current folder may lie,
// and what happens where they cannot.
#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "worker.h"

using namespace hardening;

namespace {

using Variables = decltype(Surroundings::variables);

// A folder with a home and a folder for temporaries, for a user without rights.
struct Place {
  TempDir dir;
  Surroundings around;

  Place() {
    make("home", 0700);
    make("tmp", 0700);
    chmod(dir.path().c_str(), 0755);
    if (is_root()) around.user = other_user;
    around.variables = {{"FUSEBOOK_CACHE_DIR", std::nullopt},
                        {"XDG_CACHE_HOME", std::nullopt},
                        {"HOME", dir / "home"},
                        {"TMPDIR", dir / "tmp"}};
  }
  // A folder of the user who will run the worker.
  std::string make(const std::string& name, mode_t mode) const {
    const std::string path = dir / name;
    fs::create_directory(path);
    chmod(path.c_str(), mode);
    if (is_root()) CHECK(chown(path.c_str(), other_user, other_user) == 0);
    return path;
  }
  Place& with(const std::string& name, std::optional<std::string> value) {
    around.variables.emplace_back(name, std::move(value));
    return *this;
  }
  Outcome run() const { return run_worker(around, {"step"}); }
};

// Right, with so many warnings, and so many kernels taken from the disk.
void check_run(const Place& place, long warnings, long from_disk) {
  const Outcome outcome = place.run();
  CAPTURE(outcome.err);
  CHECK(outcome.code == 0);
  CHECK(contains(outcome.out, "right"));
  CHECK(warnings_in(outcome.err) == warnings);
  CHECK(number_in(outcome.out, "disk_hits") == from_disk);
  CHECK(number_in(outcome.out, "compiler_runs") == 1 - from_disk);
  CHECK(names_in(place.dir / "tmp").empty());
}

// The first run keeps its kernel in `folder`, the second one finds it.
void check_kept(const Place& place, const std::string& folder) {
  check_run(place, 0, 0);
  CHECK(names_in(folder).size() == 1);
  CHECK(strangers_in(folder).empty());
  check_run(place, 0, 1);
}

void check_not_kept(const Place& place) {
  check_run(place, 1, 0);
  check_run(place, 1, 0);
}

// A path of folders with long names, at least `length` bytes long.
std::string deep_path(const std::string& start, std::size_t length) {
  std::string path = start;
  while (path.size() < length) {
    const std::size_t left = length - path.size();
    path += "/" + std::string(std::min<std::size_t>(200, left), 'd');
  }
  return path;
}

// Names that a shell, a printf, a terminal, a compiler driver or a parser of
// its messages could stumble over.
const std::vector<std::string> hostile_names = {
    "two words",
    " leading and trailing ",
    "tab\there",
    "new\nline",
    "\nnewline first",
    "carriage\rreturn",
    "it's",
    "say \"hi\"",
    "mixed '\" \"' quotes",
    "$(touch planted)",
    "`touch planted`",
    "${HOME}",
    "$HOME $PATH",
    "; touch planted ;",
    "| touch planted",
    "&& touch planted",
    "> planted",
    "back\\slash",
    "\\",
    "*",
    "? [a-z] {a,b}",
    "-o",
    "--help",
    "@response",
    "#hash",
    "~",
    "%s%n%d",
    "a:b=c,d",
    "kernel.cpp:3:1: error: no",
    "No space left on device",
    "not utf-8 \xff\xfe\x80",
    "\x01\x1b[31m\x7f",
    "ünïcödé 编译优化器",
    std::string(255, 'x'),
};

}  // namespace

TEST_CASE("a home: the kernel is kept in its .cache") {
  const Place place;
  check_kept(place, place.dir / "home/.cache/fusebook");
}

TEST_CASE("a home that is missing is made where that is allowed") {
  Place place;
  place.with("HOME", place.dir / "home/new/deep");
  check_kept(place, place.dir / "home/new/deep/.cache/fusebook");
}

TEST_CASE("a home that cannot be made, or is no folder") {
  for (const char* const home : {"/proc/none", "/dev/null"}) {
    CAPTURE(home);
    Place place;
    place.with("HOME", home);
    check_not_kept(place);
  }
}

TEST_CASE("a home that is read-only") {
  const Place place;
  chmod((place.dir / "home").c_str(), 0500);
  check_not_kept(place);
}

TEST_CASE("a home that is relative, empty or unset is none") {
  // The user database names none for this user either.
  if (!is_root()) return;
  for (const auto& home :
       {std::optional<std::string>("relative"), std::optional<std::string>(""),
        std::optional<std::string>()}) {
    Place place;
    place.with("HOME", home);
    place.around.folder = place.make("current", 0700);
    check_not_kept(place);
    CHECK(names_in(place.dir / "current").empty());
  }
}

TEST_CASE("XDG_CACHE_HOME: relative is ignored, missing is made") {
  {
    Place place;
    place.with("XDG_CACHE_HOME", "relative");
    check_kept(place, place.dir / "home/.cache/fusebook");
  }
  Place place;
  place.with("XDG_CACHE_HOME", place.dir / "home/xdg");
  check_kept(place, place.dir / "home/xdg/fusebook");
}

TEST_CASE("XDG_CACHE_HOME that cannot be used") {
  Place place;
  place.make("xdg", 0500);
  place.with("XDG_CACHE_HOME", place.dir / "xdg");
  check_not_kept(place);
}

TEST_CASE("a cache that anybody may write, or that is a link") {
  Place place;
  place.make("open", 0777);
  place.with("FUSEBOOK_CACHE_DIR", place.dir / "open");
  check_not_kept(place);
  place.make("target", 0700);
  fs::create_directory_symlink("target", place.dir / "link");
  place.with("FUSEBOOK_CACHE_DIR", place.dir / "link/");
  check_not_kept(place);
  CHECK(names_in(place.dir / "open").empty());
  CHECK(names_in(place.dir / "target").empty());
}

TEST_CASE("a cache of another user" * doctest::skip(!is_root())) {
  Place place;
  fs::create_directory(place.dir / "root's");
  chmod((place.dir / "root's").c_str(), 0755);
  place.with("FUSEBOOK_CACHE_DIR", place.dir / "root's");
  check_not_kept(place);
  CHECK(names_in(place.dir / "root's").empty());
}

TEST_CASE("a cache that became read-only still serves what it has") {
  Place place;
  place.make("cache", 0700);
  place.with("FUSEBOOK_CACHE_DIR", place.dir / "cache");
  check_kept(place, place.dir / "cache");
  const std::string cache = place.dir / "cache";
  chmod(cache.c_str(), 0500);
  check_run(place, 0, 1);
  chmod(cache.c_str(), 0700);
  for (const std::string& name : names_in(cache))
    fs::remove(cache + "/" + name);
  chmod(cache.c_str(), 0500);
  check_not_kept(place);
}

TEST_CASE("where nothing may be executed, kernels run all the same" *
          doctest::skip(!can_mount())) {
  const TempDir dir;
  chmod(dir.path().c_str(), 0700);
  CHECK(run_child([&] {
          if (!leave_file_systems()) return not_possible_here;
          if (!mount_memory(dir.path(), "mode=700", MS_NOEXEC)) {
            return not_possible_here;
          }
          fs::create_directory(dir / "tmp");
          Surroundings around;
          around.variables = {{"FUSEBOOK_CACHE_DIR", dir / "cache"},
                              {"TMPDIR", dir / "tmp"}};
          for (const long from_disk : {0, 1}) {
            const Outcome outcome = run_worker(around, {"step"});
            if (outcome.code != 0 || !outcome.err.empty()) return 1;
            if (number_in(outcome.out, "disk_hits") != from_disk) return 2;
          }
          around.variables = {{"FUSEBOOK_CACHE_DIR", "off"},
                              {"TMPDIR", dir / "tmp"}};
          if (run_worker(around, {"step"}).code != 0) return 3;
          return names_in(dir / "tmp").empty() ? 0 : 4;
        }) == 0);
}

TEST_CASE("a folder for temporaries that cannot be used is passed over") {
  Place place;
  place.with("FUSEBOOK_CACHE_DIR", "off");
  place.make("shut", 0500);
  write_text(place.dir / "file", "");
  for (const auto& tmp : {std::optional<std::string>(place.dir / "missing"),
                          std::optional<std::string>(place.dir / "shut"),
                          std::optional<std::string>(place.dir / "file"),
                          std::optional<std::string>("relative"),
                          std::optional<std::string>("")}) {
    place.with("TMPDIR", tmp);
    check_run(place, 0, 0);
  }
  place.with("TMPDIR", std::nullopt);
  check_run(place, 0, 0);
}

TEST_CASE("thirty hostile names") {
  CHECK(hostile_names.size() >= 30);
  for (const std::string& name : hostile_names) {
    CAPTURE(name);
    Place place;
    const std::string folder = place.make(name, 0700);
    for (const char* const part : {"/tmp", "/current"}) {
      place.make(name + part, 0700);
    }
    fs::copy_file(worker_path(), folder + "/worker");
    place.with("HOME", folder).with("TMPDIR", folder + "/tmp");
    place.around.folder = folder + "/current";
    const auto run = [&](long warnings, long from_disk) {
      const Outcome outcome =
          run_in(place.around, {folder + "/worker", "step"});
      CAPTURE(outcome.err);
      CHECK(outcome.code == 0);
      CHECK(warnings_in(outcome.err) == warnings);
      CHECK(number_in(outcome.out, "disk_hits") == from_disk);
      CHECK(names_in(folder + "/tmp").empty());
    };
    run(0, 0);
    run(0, 1);
    CHECK(names_in(folder + "/.cache/fusebook").size() == 1);
    // Relative to the current folder, and compiled where temporaries go.
    place.with("FUSEBOOK_CACHE_DIR", "relative");
    run(0, 0);
    CHECK(names_in(folder + "/current") ==
          std::vector<std::string>{"relative"});
    place.with("FUSEBOOK_CACHE_DIR", "off");
    run(0, 0);
    CHECK(names_in(folder).size() == 4);
  }
}

TEST_CASE("paths up to the longest, and longer") {
  for (const std::size_t length : {1000, 3900, 4020, 4060, 4090, 4100, 6000}) {
    CAPTURE(length);
    Place place;
    const std::string deep = deep_path(place.dir / "home", length);
    place.with("FUSEBOOK_CACHE_DIR", deep).with("TMPDIR", deep + "/tmp");
    const Outcome outcome = place.run();
    CAPTURE(outcome.err);
    CHECK(outcome.code == 0);
    // In between, whether it works is the system's business.
    if (length < 4000) CHECK(warnings_in(outcome.err) == 0);
    if (length > 4096) CHECK(warnings_in(outcome.err) == 1);
    CHECK(warnings_in(outcome.err) <= 1);
    CHECK(warnings_in(outcome.err) >= 0);
    CHECK(strangers_in(deep).empty());
  }
}
