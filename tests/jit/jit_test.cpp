#include "fusebook/jit/jit.h"

#include <dlfcn.h>
#include <doctest/doctest.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <fstream>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "fusebook/jit/host_compiler.h"
#include "fusebook/jit/loaded_libraries.h"
#include "fusebook/support/error.h"
#include "support/answer_object.h"
#include "support/jit_testing.h"

using namespace jit_testing;
using fuse::build_library;
using fuse::Library;

namespace {

using Words = std::vector<std::string>;

int answer_of(const Library& library) {
  return reinterpret_cast<int (*)()>(library.symbol("answer"))();
}

// The disk cache off, and no compiler chosen: what each test starts from.
struct Plain {
  Env cache{"FUSEBOOK_CACHE_DIR", "off"};
  Env fusebook_cxx{"FUSEBOOK_CXX", nullptr};
  Env cxx{"CXX", nullptr};
};

// The message of the Error that building throws; empty if it throws none.
template <class Kind = fuse::Error>
std::string failure(const std::string& source) {
  try {
    build_library(source);
  } catch (const Kind& error) {
    return error.what();
  }
  return {};
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != text.npos;
}

// A compiler made of shell: it notes that it ran, and answers 42 whatever the
// source says.
void write_fake_compiler(const TempDir& dir, const std::string& path) {
  write_text(dir / "object", answer_object(42));
  write_script(path, "echo ran >> '" + dir / "log" + "'\n" +
                         "while [ \"$1\" != -o ]; do shift; done\n" + "cp '" +
                         dir / "object" + "' \"$2\"\n");
}

std::size_t fake_runs(const TempDir& dir) {
  return count_of(read_text(dir / "log"), "ran");
}

// The control word of the vector unit: rounding, denormals, exceptions.
unsigned floating_modes() {
#if defined(__x86_64__)
  return __builtin_ia32_stmxcsr() & ~0x3fU;  // without the sticky flags
#else
  return 0;
#endif
}

// Whether building throws NoCompiler, rather than another Error or none.
bool is_missing(const std::string& source) {
  bool missing = false;
  try {
    build_library(source);
  } catch (const fuse::Error& error) {
    missing = dynamic_cast<const fuse::NoCompiler*>(&error) != nullptr;
  }
  return missing;
}

std::string found_compiler() { return fuse::find_host_compiler().words[0]; }

}  // namespace

TEST_CASE("a kernel is compiled, loaded and called") {
  const Plain plain;
  const auto library = build_library(answer_source(7));
  CHECK(answer_of(*library) == 7);
  CHECK_THROWS_WITH_AS(library->symbol("question"),
                       "the compiled kernel has no symbol 'question'",
                       fuse::Error);
}

TEST_CASE("the same source is compiled once, another one separately") {
  const Plain plain;
  const long before = fuse::jit_counters().compiler_runs;
  const auto first = build_library(answer_source(1001));
  CHECK(build_library(answer_source(1001)) == first);
  const auto second = build_library(answer_source(1002));
  const auto third = build_library(answer_source(1003));
  CHECK(fuse::jit_counters().compiler_runs == before + 3);
  // Each was loaded from a descriptor of the same number.
  CHECK(answer_of(*first) == 1001);
  CHECK(answer_of(*second) == 1002);
  CHECK(answer_of(*third) == 1003);
}

TEST_CASE("a library is unloaded with its last user") {
  const Plain plain;
  auto library = build_library(answer_source(1004));
  const auto address =
      reinterpret_cast<std::uintptr_t>(library->symbol("answer"));
  const auto is_mapped = [&] {
    // The lowest page of the code, as the map of the process spells it.
    Dl_info info;
    return dladdr(reinterpret_cast<void*>(address), &info) != 0;
  };
  CHECK(is_mapped());
  fuse::forget_libraries();
  CHECK(is_mapped());
  CHECK(answer_of(*library) == 1004);
  library.reset();
  CHECK_FALSE(is_mapped());
}

TEST_CASE("arithmetic is exact, whatever the compiler's own words say") {
  const char* const source =
      "extern \"C\" __attribute__((visibility(\"default\")))\n"
      "void run(const double* x, double* y, int n) {\n"
      "  for (int i = 0; i < n; ++i) {\n"
      "    y[4 * i] = x[3 * i] * x[3 * i + 1] + x[3 * i + 2];\n"
      "    y[4 * i + 1] = (x[3 * i] + x[3 * i + 2]) - x[3 * i + 2];\n"
      "    y[4 * i + 2] = x[3 * i] / x[3 * i + 1];\n"
      "    y[4 * i + 3] = x[3 * i] != x[3 * i] ? 1.0 : 0.0;\n"
      "  }\n"
      "}\n";
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double tiny = std::numeric_limits<double>::denorm_min();
  // 1 + 2^-27 squared, minus 1: contraction would keep the last bit.
  const double x[] = {1 + 0x1p-27, 1 + 0x1p-27, -1, 1.0,  3.0, 0x1p60,
                      nan,         1.0,         0,  tiny, 1.0, 0.0};
  const Plain plain;
  const std::string compiler = found_compiler();
  for (const char* const words :
       {"", " -Ofast", " -ffast-math -ffp-contract=fast",
        " -O0 -funsafe-math-optimizations"}) {
    const std::string value = compiler + words;
    CAPTURE(value);
    const Env env("CXX", value);
    const unsigned modes = floating_modes();
    const auto library = build_library(source);
    CHECK(floating_modes() == modes);
    double y[16];
    using Run = void (*)(const double*, double*, int);
    reinterpret_cast<Run>(library->symbol("run"))(x, y, 4);
    CHECK(floating_modes() == modes);
    CHECK(y[0] == 0x1p-26);
    CHECK(y[5] == 0.0);  // 1 is lost beside 2^60
    CHECK(y[6] == 1.0 / 3.0);
    CHECK(y[11] == 1.0);
    CHECK(y[12] == tiny);
  }
}

TEST_CASE("words are split at blanks, quotes keep them together") {
  const auto split = [](const char* text) {
    return fuse::split_words(text, "CXX");
  };
  CHECK(split("g++") == Words{"g++"});
  CHECK(split("  ccache \t g++\n-m64 ") == Words{"ccache", "g++", "-m64"});
  CHECK(split("'a b' \"c d\"e f\\ g") == Words{"a b", "c de", "f g"});
  CHECK(split("g++ '' -DX=\"\"") == Words{"g++", "", "-DX="});
  CHECK(split("'a\\b' \"a\\\"b\" a\\\\b a\\'b") ==
        Words{"a\\b", "a\"b", "a\\b", "a'b"});
  CHECK(split("g++ $(touch x) `id` $HOME * ; ~") ==
        Words{"g++", "$(touch", "x)", "`id`", "$HOME", "*", ";", "~"});
}

TEST_CASE("a value that cannot be split is a usage error with its name") {
  for (const char* const value : {"g++ 'open", "g++ \"open", "''"}) {
    const Plain plain;
    const Env env("CXX", value);
    const std::string message = failure<fuse::UsageError>(answer_source(1));
    CHECK(message.starts_with("CXX is '" + std::string(value) + "'"));
  }
}

TEST_CASE("a compiler with a hostile name is run, never expanded") {
  const TempDir dir;
  const std::string folder = dir / "a 'b' \"c\" $(touch x) `touch y`; touch z";
  fs::create_directory(folder);
  const std::string path = folder + "/g++ $(touch x) 'q' \"y\" \\ *";
  write_fake_compiler(dir, path);
  const std::string here = fs::current_path();
  fs::current_path(dir.path());
  const auto expected = names_in(dir.path()).size() + 1;  // and the log
  const Plain plain;
  const Env env("FUSEBOOK_CXX", path);
  CHECK(answer_of(*build_library("hostile name")) == 42);
  CHECK(fake_runs(dir) == 1);
  CHECK(names_in(dir.path()).size() == expected);
  CHECK(names_in(folder).size() == 1);
  fs::current_path(here);
}

TEST_CASE("shell characters in the words reach the compiler as they are") {
  const TempDir dir;
  write_fake_compiler(dir, dir / "plain");
  write_script(dir / "wrap", "printf '%s|' \"$1\" \"$2\" \"$3\" > '" +
                                 dir / "words" + "'\nshift 3\nexec '" +
                                 dir / "plain" + "' \"$@\"\n");
  const Plain plain;
  const Env env("CXX", dir / "wrap" + " $(touch\\ x) '; exit 1' \"`id`\"");
  CHECK(answer_of(*build_library("shell characters")) == 42);
  CHECK(read_text(dir / "words") == "$(touch x)|; exit 1|`id`|");
}

TEST_CASE("a wrapper before the compiler works, and so do options after it") {
  const TempDir dir;
  write_script(dir / "ccache", "exec \"$@\"\n");
  const Plain plain;
  const Env path("PATH", dir.path() + ":" + std::getenv("PATH"));
  {
    const std::string found = found_compiler();
    const Env env("CXX", "ccache " + found);
    CHECK(answer_of(*build_library(answer_source(2001))) == 2001);
    const auto compiler = fuse::find_host_compiler();
    CHECK(compiler.words == Words{dir / "ccache", found});
    CHECK(contains(compiler.identity, dir / "ccache" + " -> "));
    CHECK(contains(compiler.identity, found + " -> "));
  }
  const Env env("CXX", found_compiler() + " -DANSWER=2002");
  const std::string source =
      "extern \"C\" __attribute__((visibility(\"default\")))\n"
      "int answer() { return ANSWER; }\n";
  CHECK(answer_of(*build_library(source)) == 2002);
}

TEST_CASE("FUSEBOOK_CXX goes before CXX, CXX before the PATH") {
  const TempDir dir;
  for (const char* const name : {"c++", "g++", "clang++", "one", "two"}) {
    write_script(dir / name, "exit 1\n");
  }
  const Plain plain;
  const Env path("PATH", dir.path());
  const auto chosen = [] { return fuse::find_host_compiler().words; };
  CHECK(chosen() == Words{dir / "c++"});
  fs::remove(dir / "c++");
  CHECK(chosen() == Words{dir / "g++"});
  chmod((dir / "g++").c_str(), 0644);
  CHECK(chosen() == Words{dir / "clang++"});
  const Env cxx("CXX", "one -x");
  CHECK(chosen() == Words{dir / "one", "-x"});
  const Env fusebook_cxx("FUSEBOOK_CXX", "two");
  CHECK(chosen() == Words{dir / "two"});
  const Env blank("FUSEBOOK_CXX", " ");
  CHECK(chosen() == Words{dir / "one", "-x"});
}

TEST_CASE("no compiler is told apart, with what was tried and what to do") {
  const TempDir dir;
  write_text(dir / "plain", "not executable");
  const Plain plain;
  const Env path("PATH", dir.path());
  const auto message = [] { return failure<fuse::NoCompiler>("no compiler"); };
  CHECK(contains(message(), "none of c++, g++ and clang++ is in PATH (" +
                                dir.path() + ")"));
  CHECK(contains(message(), "apt-get install g++"));
  {
    const Env env("CXX", "no-such-compiler -x");
    CHECK(contains(
        message(),
        "CXX is 'no-such-compiler -x', but no such program is in PATH"));
  }
  for (const std::string& name : {dir / "missing", dir / "plain", dir.path()}) {
    const Env env("FUSEBOOK_CXX", name);
    CHECK(contains(message(), "FUSEBOOK_CXX is '" + name + "', but "));
    CHECK(contains(message(), name == dir / "missing"
                                  ? "that file does not exist"
                                  : "that file is not executable"));
  }
}

TEST_CASE("another compiler behind the same name is another compiler") {
  const TempDir dir;
  write_fake_compiler(dir, dir / "cc");
  const Plain plain;
  const Env env("CXX", dir / "cc");
  const std::string before = fuse::find_host_compiler().identity;
  CHECK(fuse::find_host_compiler().identity == before);
  {
    const Env words("CXX", dir / "cc" + " -g");
    CHECK(fuse::find_host_compiler().identity != before);
  }
  // Of the same size: only the inode and the time tell.
  fs::copy_file(dir / "cc", dir / "copy");
  fs::rename(dir / "copy", dir / "cc");
  CHECK(fuse::find_host_compiler().identity != before);
}

TEST_CASE("a compiler that fails is an error that shows what happened") {
  const Plain plain;
  const std::string message =
      failure("int one;\nint two;\nint three = four;\nint five;\n");
  CHECK(contains(message, "the host compiler failed with exit code 1"));
  CHECK(contains(message, "command: /"));
  CHECK(contains(message, " -o kernel.so kernel.cpp"));
  CHECK(contains(message, "kernel.cpp:3:13: error:"));
  CHECK(contains(message,
                 "    2 | int two;\n  > 3 | int three = four;\n"
                 "    4 | int five;\n"));
  CHECK(contains(message, "FUSEBOOK_CXX"));
}

TEST_CASE("a compiler that is killed is an error that names the signal") {
  const TempDir dir;
  write_script(dir / "dying", "echo nearly there\nkill -SEGV $$\n");
  const Plain plain;
  const Env env("CXX", dir / "dying");
  const std::string message = failure("killed");
  CHECK(contains(message, "was killed by signal 11 (Segmentation fault)"));
  CHECK(contains(message, "nearly there"));
  CHECK_FALSE(is_missing("killed"));
}

TEST_CASE("a broken compiler is no missing one") {
  const TempDir dir;
  write_text(dir / "odd", "neither a script nor a binary");
  chmod((dir / "odd").c_str(), 0755);
  const Plain plain;
  const Env env("CXX", dir / "odd");
  CHECK(contains(failure("broken"), "cannot start '" + dir / "odd" + "'"));
  CHECK_FALSE(is_missing("broken"));
}

TEST_CASE("a compiler that writes nothing that can be loaded is an error") {
  const TempDir dir;
  const Plain plain;
  write_fake_compiler(dir, dir / "cc");
  const Env env("CXX", dir / "cc");
  const auto message = [&](const std::string& object) {
    write_text(dir / "object", object);
    return failure("garbage of " + std::to_string(object.size()) + " bytes");
  };
  CHECK(
      contains(message(""), "reported no failure but wrote no shared object"));
  CHECK(contains(message("garbage"), "cannot be loaded: it is too short"));
  CHECK(contains(message(std::string(5000, 'x')),
                 "cannot be loaded: it is not a shared object"));
  const std::string& whole = answer_object(42);
  for (const std::size_t size : {whole.size() / 8, whole.size() / 2}) {
    CHECK(contains(message(whole.substr(0, size)),
                   "cannot be loaded: it is truncated"));
  }
  write_script(dir / "cc", "echo all is well\n");
  const std::string nothing = failure("nothing");
  CHECK(contains(nothing, "reported no failure but wrote no shared object"));
  CHECK(contains(nothing, "all is well"));
  CHECK_FALSE(is_missing("nothing"));
}

TEST_CASE("a kernel that needs what the process lacks is an error") {
  const Plain plain;
  const std::string message = failure(
      "void no_such_function();\n"
      "extern \"C\" void run() { no_such_function(); }\n");
  CHECK(contains(message, "cannot be loaded: "));
  CHECK(contains(message, "no_such_function"));
}

TEST_CASE("temporaries go to TMPDIR and are gone afterwards") {
  const TempDir dir;
  const TempDir temporary;
  write_fake_compiler(dir, dir / "cc");
  write_script(dir / "spy", "printf '%s' \"$TMPDIR\" > '" + dir / "tmpdir" +
                                "'\nexec '" + dir / "cc" + "' \"$@\"\n");
  const Plain plain;
  const Env env("CXX", dir / "spy");
  const Env tmpdir("TMPDIR", temporary.path());
  build_library("temporaries");
  CHECK(read_text(dir / "tmpdir").starts_with(temporary / "fusebook-"));
  CHECK(names_in(temporary.path()).empty());
  write_script(dir / "spy", "exit 1\n");
  CHECK(contains(failure("temporaries 2"), "exit code 1"));
  CHECK(names_in(temporary.path()).empty());
  // One that does not exist is passed over.
  write_script(dir / "spy", "exec '" + dir / "cc" + "' \"$@\"\n");
  const Env missing("TMPDIR", temporary / "missing");
  CHECK(answer_of(*build_library("temporaries 3")) == 42);
}

TEST_CASE("what an interrupted process left is swept by the next") {
  const TempDir dir;
  const TempDir temporary;
  const Plain plain;
  const Env tmpdir("TMPDIR", temporary.path());
  {
    write_script(dir / "slow",
                 "echo $$ > '" + dir / "pid" + "'\nexec sleep 60\n");
    const Env env("CXX", dir / "slow");
    const pid_t child = start_child([] {
      signal(SIGINT, SIG_DFL);
      build_library("interrupted");
      return 0;
    });
    while (read_text(dir / "pid").find('\n') == std::string::npos) {
      usleep(1000);
    }
    kill(child, SIGINT);
    CHECK(wait_for(child) == -SIGINT);
    kill(std::stoi(read_text(dir / "pid")), SIGKILL);
  }
  const auto left = names_in(temporary.path());
  REQUIRE(left.size() == 1);
  fs::create_directory(temporary / "not-ours");
  write_fake_compiler(dir, dir / "cc");
  const Env env("CXX", dir / "cc");
  CHECK(answer_of(*build_library("after an interruption")) == 42);
  CHECK(names_in(temporary.path()) == Words{"not-ours"});
}

TEST_CASE("eight threads share one compilation") {
  const TempDir dir;
  write_fake_compiler(dir, dir / "cc");
  const Plain plain;
  const Env env("CXX", dir / "cc");
  std::vector<std::shared_ptr<Library>> libraries(8);
  std::vector<std::thread> threads;
  for (auto& library : libraries) {
    threads.emplace_back([&] { library = build_library("shared"); });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(fake_runs(dir) == 1);
  for (const auto& library : libraries) CHECK(library == libraries[0]);
}

TEST_CASE("threads that wait for a compilation share its error") {
  const TempDir dir;
  write_script(dir / "cc", "sleep 0.1; echo no luck; exit 3\n");
  const Plain plain;
  const Env env("CXX", dir / "cc");
  std::atomic<int> failures = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      if (contains(failure("shared failure"), "no luck")) ++failures;
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(failures == 8);
  // A failure is not remembered.
  write_fake_compiler(dir, dir / "cc");
  CHECK(answer_of(*build_library("shared failure")) == 42);
}

TEST_CASE("a child forked during a compilation does not wait for it") {
  const TempDir dir;
  write_fake_compiler(dir, dir / "cc");
  write_script(dir / "slow", "echo started > '" + dir / "started" + "'\n" +
                                 "while [ ! -e '" + dir / "go" +
                                 "' ]; do sleep 0.01; done\nexec '" +
                                 dir / "cc" + "' \"$@\"\n");
  const Plain plain;
  const Env env("CXX", dir / "slow");
  std::thread builder([] { build_library("forked"); });
  while (!fs::exists(dir / "started")) usleep(1000);
  const pid_t child = start_child(
      [] { return answer_of(*build_library("forked")) == 42 ? 0 : 1; });
  write_text(dir / "go", "");
  CHECK(wait_for(child) == 0);
  builder.join();
  CHECK(fake_runs(dir) == 2);
}

TEST_CASE("a process that ignores SIGCHLD can compile") {
  const Plain plain;
  CHECK(run_child([] {
          signal(SIGCHLD, SIG_IGN);
          return answer_of(*build_library(answer_source(3001))) == 3001 ? 0 : 1;
        }) == 0);
}

TEST_CASE("libraries nobody uses are let go in the end, used ones are kept") {
  const auto build = [] { return std::make_shared<Library>(nullptr); };
  const auto find = [&](const std::string& source) {
    return fuse::find_or_build_library("prefix ", source, build);
  };
  const auto kept = find("kept");
  const std::weak_ptr<Library> unused = find("unused");
  CHECK_FALSE(unused.expired());
  for (int i = 0; i < 1000; ++i) find("one of " + std::to_string(i));
  CHECK(unused.expired());
  CHECK(find("kept") == kept);
  CHECK(fuse::find_library("prefix ", "kept") == kept);
  CHECK(fuse::find_library("prefix ", "unused") == nullptr);
}
