#include "fusebook/harness/recipe.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "fusebook/device/device.h"
#include "fusebook/json/json.h"
#include "fusebook/runtime/parallel.h"
#include "fusebook/support/error.h"
#include "support/jit_testing.h"
#include "support/sanitized.h"
#include "support/testing.h"

using namespace fuse;
using namespace jit_testing;
using testing::contains;

namespace {

using Body = std::function<void(const Options&)>;

/// Sends a file descriptor to a file for a scope.
class Redirect {
 public:
  Redirect(int descriptor, const std::string& path)
      : descriptor_(descriptor), old_(dup(descriptor)) {
    std::fflush(nullptr);
    const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    dup2(file, descriptor);
    close(file);
  }
  ~Redirect() {
    std::fflush(nullptr);
    dup2(old_, descriptor_);
    close(old_);
  }
  Redirect(const Redirect&) = delete;
  Redirect& operator=(const Redirect&) = delete;

 private:
  int descriptor_;
  int old_;
};

struct Result {
  int code;
  std::string out;
  std::string err;
};

// On the CPU, whatever this machine has, unless `words` say otherwise.
int call(const std::vector<std::string>& words, const Body& body) {
  std::vector<const char*> argv{"demo", "--device=cpu"};
  for (const std::string& word : words) argv.push_back(word.c_str());
  return run_recipe("demo", int(argv.size()), argv.data(), body,
                    {{"layers", 10, 1, 100, "number of layers"}});
}

Result run(const std::vector<std::string>& words, const Body& body) {
  const TempDir folder;
  Result result{};
  {
    const Redirect out(STDOUT_FILENO, folder / "out");
    const Redirect err(STDERR_FILENO, folder / "err");
    result.code = call(words, body);
  }
  result.out = read_text(folder / "out");
  result.err = read_text(folder / "err");
  return result;
}

/// Runs `body` in a child process and returns how it ended. `prepare` may
/// change what the child's standard output is.
template <class Prepare>
int status_in_child(const std::vector<std::string>& words, const Body& body,
                    const std::string& errors, const Prepare& prepare) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    const int file = open(errors.c_str(), O_WRONLY | O_CREAT, 0600);
    dup2(file, STDERR_FILENO);
    prepare();
    _exit(call(words, body));
  }
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

void quiet(const Options&) {}

/// Sets an environment variable for a scope.
class Environment {
 public:
  Environment(const char* name, const char* value) : name_(name) {
    setenv(name, value, 1);
  }
  ~Environment() { unsetenv(name_); }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  const char* name_;
};

}  // namespace

TEST_CASE("what print shows") {
  const Result result = run({}, [](const Options& options) {
    print("layers: ", options["layers"]);
    print(0.1, ' ', 0.1F, ' ', 1e-8, " ", true, false, std::string("!"));
    print();
    print(tensor(0.01), " ", Shape{2, 3});
    print_block("two\nlines");
    print_error(Error("a.cpp:12: no; do this; or that::x"));
    print_error(Error(""));
  });
  CHECK(result.code == 0);
  CHECK(result.err.empty());
  CHECK(result.out ==
        "layers: 10\n0.1 0.1 1e-08 truefalse!\n\ntensor(0.0100) [2, 3]\n"
        "two\nlines\n"
        "a.cpp:12:\n  no;\n  do this;\n  or that::x\n\n");
}

TEST_CASE("headings stand apart") {
  const Result result = run({}, [](const Options&) {
    step("First");
    print("a");
    step("Second");
    print("b");
  });
  CHECK(result.out == "== First\na\n\n== Second\nb\n");
  const Result late = run({}, [](const Options&) {
    print("before");
    step("First");
  });
  CHECK(late.out == "before\n\n== First\n");
}

TEST_CASE("named values print with their units") {
  const Result result = run({}, [](const Options&) {
    print(measured("eager_us", 747.21, "us"));
    measured("compiled_us", 309.5, "us");
    print(ratio("speedup", "eager_us", "compiled_us"));
    print(varying("count", 3, 1, 5), ", ", varying("part", 0.5, 0, 1, "GB"));
    print(varying_text("cpu", "a CPU"));
    print(exact("launches", 1), " ", exact("equal", true));
    print("[", right(exact("n", 42), 5), "|", left("ab", 4), "]");
  });
  CHECK(result.err.empty());
  CHECK(result.out ==
        "747.2 us\n2.41x\n3, 0.5 GB\na CPU\n1 true\n[   42|ab  ]\n");
}

TEST_CASE("tables") {
  const Result result = run({}, [](const Options&) {
    print_columns("step", "flat loss", "a name of some length");
    print_row(5, 0.1, 12345678);
    print_row(100, 123456.7, 2.0 / 3);
  });
  CHECK(result.err.empty());
  CHECK(result.out ==
        "step     flat loss  a name of some length\n"
        "   5        0.1000      12345678\n"
        " 100        123457        0.6667\n");
}

TEST_CASE("numbers of tables that may differ") {
  const TempDir folder;
  const std::string path = folder / "record.json";
  const auto body = [](const Options&) {
    step("a table");
    print_columns("step", "Flat loss", "rate");
    print_row(5, Within{0.25, 0, 1}, 0.5);
  };
  const Result result = run({"--record", path}, body);
  CHECK(result.err.empty());
  const std::string row = "   5        0.2500        0.5000\n";
  CHECK(contains(result.out, "step     Flat loss          rate\n" + row));
  const std::string record = read_text(path);
  CHECK(contains(record, "   5@{flat_loss_5}        0.5000"));
  CHECK(parse_json(record, 4).at("values").at("flat_loss_5") ==
        ParsedJson::parse(R"({"value": 0.25, "unit": "", "kind": "varying",
                              "low": 0, "high": 1,
                              "shown": "        0.2500"})"));
  const std::string results = folder / "results.json";
  run({"--json", results}, body);
  CHECK_FALSE(contains(read_text(results), "flat_loss"));
  CHECK(contains(run({},
                     [](const Options&) {
                       print_columns("step", "loss");
                       print_row(5, Within{2, 0, 1});
                     })
                     .err,
                 "the value 'loss_5' is 2; it must lie from 0 to 1"));
}

TEST_CASE("results as JSON") {
  const TempDir folder;
  const std::string path = folder / "results.json";
  const Result result =
      run({"--json", path, "--threads=3"}, [&](const Options&) {
        measured("eager_us", 747.25, "us");
        exact("launches", 1);
        exact("equal", true);
        exact("rate", 0.1);
        exact("name", "a \"b\"");
        varying("count", 3, 1, 5);
        varying_text("cpu", "not a result");
        CHECK_FALSE(fs::exists(path));
      });
  CHECK(result.code == 0);
  CHECK(read_text(path) ==
        "{\n"
        "  \"recipe\": \"demo\",\n"
        "  \"device\": \"cpu\",\n"
        "  \"threads\": 3,\n"
        "  \"options\": {\n"
        "    \"layers\": 10\n"
        "  },\n"
        "  \"eager_us\": 747.25,\n"
        "  \"launches\": 1,\n"
        "  \"equal\": true,\n"
        "  \"rate\": 0.1,\n"
        "  \"name\": \"a \\\"b\\\"\",\n"
        "  \"count\": 3\n"
        "}\n");
  CHECK(names_in(folder.path()).size() == 1);
  set_thread_count(0);
}

TEST_CASE("the record of a run") {
  const Environment date("SOURCE_DATE_EPOCH", "1000000000");
  const TempDir folder;
  const std::string path = folder / "record.json";
  const Result result =
      run({"--record", path, "--threads=2", "--layers=4"}, [](const Options&) {
        print("before");
        step("Speed");
        print("eager: ", measured("eager_us", 747.21, "us"), "!");
        print("a literal @", "{name}");
        print(right(ratio("ratio", "eager_us", measured("t", 500, "us"), 0.5),
                    7));
        step("Places");
        print(varying("count", 3, 1, 5, "GB"), varying_text("cpu", "a \"b\""));
        print_block("at recipes/a.cpp:12\nand recipes/a.cpp:123\n",
                    {place("/home/x/recipes/a.cpp", 12),
                     place("/home/x/recipes/a.cpp", 123)});
      });
  CHECK(result.err.empty());
  const Provenance here = current_provenance();
  CHECK(here.date == "2001-09-09");
  const Json provenance = {{"device", here.device},
                           {"threads", 2},
                           {"compiler", here.compiler},
                           {"system", here.system},
                           {"date", "2001-09-09"}};
  const std::string expected = R"({
  "format": 1, "recipe": "demo", "device": "cpu", "options": {"layers": 4},
  "provenance": )" + provenance.dump() +
                               R"(,
  "steps": [
    {"title": "", "text": "before\n"},
    {"title": "Speed",
     "text": "eager: @{eager_us}!\na literal @@{name}\n@{ratio}\n"},
    {"title": "Places",
     "text": "@{count}@{cpu}\nat @{place}\nand @{place_2}\n"}],
  "kernels": [],
  "values": {
    "count": {"value": 3, "unit": "GB", "kind": "varying", "low": 1, "high": 5,
              "shown": "3 GB"},
    "cpu": {"kind": "text", "value": "a \"b\"", "shown": "a \"b\""},
    "eager_us": {"value": 747.21, "unit": "us", "kind": "measured",
                 "shown": "747.2 us"},
    "place": {"kind": "place", "value": "recipes/a.cpp:12",
              "shown": "recipes/a.cpp:12"},
    "place_2": {"kind": "place", "value": "recipes/a.cpp:123",
                "shown": "recipes/a.cpp:123"},
    "ratio": {"value": 1.49442, "unit": "x", "kind": "ratio", "low": 0.5,
              "above": "eager_us", "below": "t", "shown": "  1.49x"},
    "t": {"value": 500, "unit": "us", "kind": "measured", "shown": "500.0 us"}}
})";
  CHECK(Json::parse(read_text(path)).dump() == Json::parse(expected).dump());
  CHECK(result.out.find("at recipes/a.cpp:12\nand recipes/a.cpp:123\n") !=
        std::string::npos);
  set_thread_count(0);
}

// ---- logs -------------------------------------------------------------------

TEST_CASE("a log that is shown is output, its places are typed") {
  const TempDir folder;
  const std::string path = folder / "record.json";
  const Result result = run({"--record", path}, [](const Options&) {
    write_log(Log::recompiles, "before", {{"recipes/a.cpp", 12}});
    step("Shown");
    show_logs(Log::recompiles);
    CHECK(log_enabled(Log::recompiles));
    print(place("recipes/a.cpp", 1));
    for (int i = 0; i < 2; ++i) {
      write_log(Log::recompiles, "f in recipes/a.cpp:12, recipes/a.cpp:123",
                {{"recipes/a.cpp", 12}, {"recipes/a.cpp", 123}});
    }
    write_log(Log::graph, "off");
    set_logs(Log::graph);
    write_log(Log::graph, "not shown");
    set_logs(Log::graph, false);
  });
  CHECK(result.code == 0);
  const std::string line =
      "[recompiles] f in recipes/a.cpp:12, recipes/a.cpp:123\n";
  CHECK(result.out == "== Shown\nrecipes/a.cpp:1\n" + line + line);
  CHECK(result.err == "[graph] not shown\n");
  const std::string typed = "[recompiles] f in @{place_2}, @{place_3}\\n";
  CHECK(read_text(path).find("\"@{place}\\n" + typed + typed + "\"") !=
        std::string::npos);
  CHECK_FALSE(log_enabled(Log::recompiles));
}

TEST_CASE("after a recipe logs go where they went before") {
  set_logs(Log::recompiles);
  const Result result = run({}, [](const Options&) {
    show_logs(Log::recompiles);
    show_logs(Log::output_code);
    throw std::runtime_error("stop");
  });
  CHECK(result.code == 1);
  CHECK(log_enabled(Log::recompiles));
  CHECK_FALSE(log_enabled(Log::output_code));
  const TempDir folder;
  {
    const Redirect err(STDERR_FILENO, folder / "err");
    write_log(Log::recompiles, "again");
  }
  CHECK(read_text(folder / "err") == "[recompiles] again\n");
  set_logs(Log::recompiles, false);
  CHECK_THROWS_AS(show_logs(Log::graph), Error);
}

TEST_CASE("hyper-parameters print as what they are") {
  const Result result = run({}, [](const Options&) {
    print(Scalar(tensor(0.0046666)), " ", Scalar(0.010000000000000002));
  });
  CHECK(result.out == "tensor(0.0047) 0.010000000000000002\n");
}

TEST_CASE("a place is where it was written") {
  std::string shown;
  std::string line;
  run({}, [&](const Options&) {
    shown = place().shown();
    line = std::to_string(__LINE__ - 1);
  });
  CHECK(shown == "tests/harness/recipe_test.cpp:" + line);
}

static std::string error_of(const Body& body) {
  const Result result = run({}, body);
  CHECK(result.code == 1);
  return result.err;
}

TEST_CASE("values that cannot be kept end the run") {
  CHECK(error_of([](const Options&) { measured("t", 0, "us"); }) ==
        "demo: error: the measured value 't' is 0; it must be finite and "
        "positive\n");
  CHECK(error_of([](const Options&) {
          measured("t", std::numeric_limits<double>::infinity(), "us");
        }) ==
        "demo: error: the measured value 't' is inf; it must be finite and "
        "positive\n");
  CHECK(error_of([](const Options&) { varying("n", 6, 1, 5); }) ==
        "demo: error: the value 'n' is 6; it must lie from 1 to 5\n");
  CHECK(error_of([](const Options&) {
          varying("n", __builtin_nan(""), 1, 5);
        }).find("'n' is nan") != std::string::npos);
  CHECK(error_of([](const Options&) {
          exact("n", 1);
          measured("n", 1, "us");
        }) == "demo: error: the value name 'n' is used twice\n");
  CHECK(error_of([](const Options&) {
          step("A");
          step("A");
        }) ==
        "demo: error: the step title 'A' is used twice (in step \"A\")\n");
}

TEST_CASE("errors name the step and leave no files") {
  const TempDir folder;
  const auto fail = [&](const Body& body) {
    return run({"--json", folder / "a", "--record", folder / "b"}, body);
  };
  const Result result = fail([](const Options&) {
    step("Training");
    print("so far");
    throw std::runtime_error("it broke");
  });
  CHECK(result.code == 1);
  CHECK(result.out == "== Training\nso far\n");
  CHECK(result.err == "demo: error: it broke (in step \"Training\")\n");
  CHECK(fail([](const Options&) { throw UsageError("CXX is wrong"); }).code ==
        2);
  CHECK(fail([](const Options&) { throw DeviceError("no device"); }).code == 3);
  CHECK(fail([](const Options&) { throw std::bad_alloc(); }).err ==
        "demo: error: out of memory; use smaller sizes\n");
  CHECK(fail([](const Options&) { throw 42; }).err ==
        "demo: error: an exception of unknown type\n");
  CHECK(fail([](const Options&) {
          zeros({1 << 30, 1 << 20});
        }).err.find("demo: error: out of memory: 4503599627370496 bytes") == 0);
  CHECK(names_in(folder.path()).size() == 0);
}

TEST_CASE("a check that fails names its place") {
  CHECK(run({}, [](const Options&) { check(true, "fine"); }).code == 0);
  std::string line;
  const Result result = run({}, [&](const Options&) {
    line = std::to_string(__LINE__ + 1);
    check(false, "both are equal");
  });
  CHECK(result.code == 1);
  CHECK(result.err ==
        "demo: error: check failed: both are equal, at "
        "tests/harness/recipe_test.cpp:" +
            line + "\n");
}

TEST_CASE("bad command lines end before the body runs") {
  bool ran = false;
  const Body body = [&](const Options&) { ran = true; };
  CHECK(run({"--layers", "0"}, body).err ==
        "demo: error: --layers: 0 is out of range; expected an integer from 1 "
        "to 100\n");
  CHECK(run({"--layers", "0"}, body).code == 2);
  CHECK(run({"--laters", "1"}, body).code == 2);
  CHECK(run({"--device", "cuda:63"}, body).code == 3);
  CHECK(run({"--json", "/no such folder/a"}, body).code == 2);
  const TempDir folder;
  const Result twice =
      run({"--json", folder / "a", "--record", folder / "a"}, body);
  CHECK(twice.code == 2);
  CHECK(twice.err.find("name the same file") != std::string::npos);
  {
    const Environment date("SOURCE_DATE_EPOCH", "yesterday");
    CHECK(run({}, body).code == 2);
  }
  CHECK_FALSE(ran);
}

TEST_CASE("help stops before the body") {
  bool ran = false;
  const Result result = run({"--help"}, [&](const Options&) { ran = true; });
  CHECK(result.code == 0);
  CHECK_FALSE(ran);
  CHECK(result.out ==
        usage_text("demo", {{"layers", 10, 1, 100, "number of layers"}}));
}

TEST_CASE("a recipe cannot run inside a recipe") {
  int inner = 0;
  const Result result =
      run({}, [&](const Options&) { inner = call({}, quiet); });
  CHECK(inner == 1);
  CHECK(result.code == 0);
  CHECK(run({}, quiet).code == 0);
}

namespace {

struct Rank {
  int number;
  int rank() const { return number; }
};

// One of several processes, of which the file is named "recipe_test".
Result run_rank(int number, const std::vector<std::string>& words,
                const std::function<void(Rank&, const Options&)>& body) {
  const TempDir folder;
  std::vector<const char*> argv{"demo", "--device=cpu"};
  for (const std::string& word : words) argv.push_back(word.c_str());
  const auto run_ranks = [&](auto program) {
    Rank rank{number};
    return program(rank);
  };
  Result result{};
  {
    const Redirect out(STDOUT_FILENO, folder / "out");
    const Redirect err(STDERR_FILENO, folder / "err");
    result.code = run_recipe_on(run_ranks, int(argv.size()), argv.data(), body);
  }
  result.out = read_text(folder / "out");
  result.err = read_text(folder / "err");
  return result;
}

}  // namespace

TEST_CASE("of several processes the first speaks") {
  const TempDir folder;
  const std::vector<std::string> words = {"--json", folder / "results.json"};
  int calls = 0;
  const auto body = [&](const Rank& rank, const Options&) {
    step("Only step");
    print("rank ", rank.rank(), ", ", exact("calls", ++calls), " calls");
  };
  const Result later = run_rank(1, words, body);
  CHECK(later.code == 0);
  CHECK(later.out.empty());
  CHECK(!std::filesystem::exists(folder / "results.json"));
  const Result first = run_rank(0, words, body);
  CHECK(first.code == 0);
  CHECK(first.out == "== Only step\nrank 0, 2 calls\n");
  CHECK(contains(read_text(folder / "results.json"), "\"calls\": 2"));
  CHECK(calls == 2);
}

TEST_CASE("of several processes the first says what all were told wrongly") {
  const auto body = [](const Rank&, const Options&) {};
  for (const int rank : {0, 1}) {
    CAPTURE(rank);
    const Result result = run_rank(rank, {"--nonsense"}, body);
    CHECK(result.code == 2);
    CHECK(result.out.empty());
    CHECK(contains(result.err, "recipe_test: error: ") == (rank == 0));
    CHECK(contains(run_rank(rank, {"--help"}, body).out, "--device") ==
          (rank == 0));
  }
}

TEST_CASE("what one of several processes throws is the caller's to tell") {
  const auto body = [](const Rank&, const Options&) { throw Error("broken"); };
  for (const int rank : {0, 1}) {
    CAPTURE(rank);
    CHECK_THROWS_WITH_AS(run_rank(rank, {}, body), "broken", Error);
  }
  // The next run is one as ever.
  CHECK(run({}, [](const Options&) { print("said"); }).out == "said\n");
}

TEST_CASE("outside of a recipe output is only printed") {
  const TempDir folder;
  {
    const Redirect out(STDOUT_FILENO, folder / "out");
    step("Title");
    print("text ", 1);
  }
  CHECK(read_text(folder / "out") == "\n== Title\ntext 1\n");
  CHECK_THROWS_AS(measured("t", 1, "us"), Error);
  CHECK_THROWS_AS(place(), Error);
}

TEST_CASE("a run lies on the device it asked for") {
  Device seen;
  const Body body = [&](const Options&) {
    seen = default_device();
    print(zeros({2}).sum());
  };
  const TempDir folder;
  const Result result =
      run({"--device", "cuda-sim", "--record", folder / "r"}, body);
  CHECK(result.code == 0);
  CHECK(to_string(seen) == "cuda-sim");
  CHECK(default_device() == cpu_device);
  const std::string record = read_text(folder / "r");
  CHECK(record.find("\"device\": \"cuda-sim\"") != std::string::npos);
  CHECK(record.find("\"device\": \"CUDA simulator on ") != std::string::npos);
}

TEST_CASE("a device that is not there is explained") {
  const Result result = run({"--device", "cuda:63"}, [](const Options&) {});
  CHECK(result.code == 3);
  CHECK(result.err.starts_with("demo: error: --device cuda:63: "));
  CHECK(result.out.empty());
}

TEST_CASE("output that cannot be written is an error") {
  const TempDir folder;
  const int full = status_in_child(
      {"--json", folder / "a"}, [](const Options&) { print("text"); },
      folder / "err", [] { dup2(open("/dev/full", O_WRONLY), STDOUT_FILENO); });
  CHECK(WIFEXITED(full));
  CHECK(WEXITSTATUS(full) == 1);
  CHECK(read_text(folder / "err") ==
        "demo: error: cannot write to standard output: No space left on "
        "device\n");
  CHECK(names_in(folder.path()).size() == 1);
}

TEST_CASE("a reader that went away is an error") {
  const TempDir folder;
  const int broken = status_in_child(
      {}, [](const Options&) { print("text"); }, folder / "err",
      [] {
        int ends[2];
        if (pipe(ends) != 0) _exit(99);
        dup2(ends[1], STDOUT_FILENO);
        close(ends[0]);
        close(ends[1]);
      });
  CHECK(WIFEXITED(broken));
  CHECK(WEXITSTATUS(broken) == 1);
  CHECK(read_text(folder / "err") ==
        "demo: error: cannot write to standard output: Broken pipe\n");
}

TEST_CASE("Ctrl-C ends with 130 and leaves no files" *
          doctest::skip(testing::thread_sanitized)) {
  const TempDir folder;
  const int status = status_in_child(
      {"--json", folder / "a", "--record", folder / "b"},
      [](const Options&) {
        raise(SIGINT);
        _exit(98);
      },
      folder / "err", [] {});
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 130);
  CHECK(names_in(folder.path()).size() == 1);
}

TEST_CASE("a run gives the signals back") {
  struct sigaction before{};
  struct sigaction after{};
  sigaction(SIGINT, nullptr, &before);
  run({}, quiet);
  sigaction(SIGINT, nullptr, &after);
  const bool same = before.sa_handler == after.sa_handler;
  CHECK(same);
}

TEST_CASE("a ratio is made of two measured values of one unit") {
  const Result result = run({}, [](const Options&) {
    measured("a_us", 30, "us");
    print(ratio("by_name", "a_us", measured("b_us", 10, "us")));
    print(ratio("of_medians", Measurement(1, {3e-6, 1e-6, 2e-6}),
                Measurement(1, {4e-6})));
  });
  CHECK(result.out == "3.00x\n0.500x\n");
  CHECK(error_of([](const Options&) {
          measured("a_us", 1, "us");
          ratio("r", "a_us", "b_us");
        }) ==
        "demo: error: the ratio 'r' needs measured values, but 'b_us' "
        "is not one\n");
  CHECK(error_of([](const Options&) {
          varying("v", 1, 0, 2);
          ratio("r", "v", measured("a_us", 1, "us"));
        }) ==
        "demo: error: the ratio 'r' needs measured values, but 'v' is "
        "not one\n");
  CHECK(error_of([](const Options&) {
          ratio("r", measured("a_us", 1, "us"), measured("b_ms", 1, "ms"));
        }) ==
        "demo: error: the ratio 'r' divides us by ms; both must have the "
        "same unit\n");
}
