#include "fusebook/support/output_file.h"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "fusebook/support/error.h"
#include "support/jit_testing.h"

using namespace fuse;
using namespace jit_testing;

namespace {

void put(const std::string& path, const std::string& text) {
  std::ofstream(path) << text;
}

}  // namespace

TEST_CASE("a file appears only when it is committed") {
  const TempDir folder;
  OutputFile file("--json", folder / "a");
  CHECK(names_in(folder.path()).size() == 0);
  file.write("text");
  CHECK_FALSE(fs::exists(folder / "a"));
  file.commit();
  CHECK(read_text(folder / "a") == "text");
  CHECK(names_in(folder.path()).size() == 1);
}

TEST_CASE("what is not committed leaves nothing behind") {
  const TempDir folder;
  put(folder / "a", "old");
  {
    OutputFile file("--json", folder / "a");
    file.write("new");
    CHECK(names_in(folder.path()).size() == 2);
  }
  CHECK(names_in(folder.path()).size() == 1);
  CHECK(read_text(folder / "a") == "old");
}

TEST_CASE("an old file is replaced") {
  const TempDir folder;
  put(folder / "a", "a long old text");
  OutputFile file("--json", folder / "a");
  file.write("new");
  file.commit();
  CHECK(read_text(folder / "a") == "new");
}

TEST_CASE("a link stays a link") {
  const TempDir folder;
  put(folder / "real", "old");
  fs::create_symlink(folder / "real", folder / "link");
  OutputFile file("--json", folder / "link");
  file.write("new");
  file.commit();
  CHECK(fs::is_symlink(folder / "link"));
  CHECK(read_text(folder / "real") == "new");
}

TEST_CASE("a device is written to and stays one") {
  OutputFile file("--json", "/dev/null");
  CHECK(file.aside().empty());
  file.write("text");
  file.commit();
  CHECK(fs::is_character_file("/dev/null"));
  OutputFile full("--json", "/dev/full");
  CHECK_THROWS_WITH_AS(full.write("text"),
                       "cannot write '/dev/full': No space left on device",
                       Error);
}

TEST_CASE("places that cannot be written to are named at once") {
  const TempDir folder;
  const std::string missing = folder / "missing";
  CHECK_THROWS_WITH_AS(
      OutputFile("--json", missing + "/a"),
      ("--json: cannot write to '" + missing + "': No such file or directory")
          .c_str(),
      UsageError);
  const std::string here = folder / ".";
  CHECK_THROWS_WITH_AS(
      OutputFile("--record", here),
      ("--record: '" + here + "' is a directory; name a file").c_str(),
      UsageError);
  CHECK_THROWS_AS(OutputFile("--json", (folder / "b") + "/"), UsageError);
}

TEST_CASE("pieces of a file are written in any order") {
  const TempDir folder;
  put(folder / "a", "old");
  OutputFile file("--json", folder / "a");
  file.begin();
  {
    FilePieces first(file.written());
    FilePieces second(file.written());
    second.write(5, "and last");
    first.write(2, "one");
    first.write(0, "no");
    first.finish();
    second.finish();
  }
  CHECK(read_text(folder / "a") == "old");
  file.commit();
  CHECK(read_text(folder / "a") == "nooneand last");
  CHECK(names_in(folder.path()).size() == 1);
  CHECK_THROWS_WITH_AS(
      FilePieces(folder / "b"),
      ("cannot write '" + folder / "b" + "': No such file or directory")
          .c_str(),
      Error);
}

TEST_CASE("pieces may be written where nothing is kept") {
  OutputFile file("--json", "/dev/null");
  file.begin();
  FilePieces pieces(file.written());
  pieces.write(5, "text");
  pieces.finish();
  file.commit();
  CHECK_THROWS_AS(FilePieces("/dev/full").write(0, "text"), Error);
}
