#include "fusebook/harness/options.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace fuse;

namespace {

const std::vector<NumberOption> numbers{
    {"layers", 10, 1, 100000, "number of Linear layers"},
    {"width", 1024, 1, 65536, "inputs and outputs of each layer"}};

Options parse(std::vector<const char*> words) {
  words.insert(words.begin(), "recipe");
  return parse_options(int(words.size()), words.data(), numbers);
}

// Versions of the library differ in these.
std::string without_empty_lines(std::string text) {
  for (std::size_t at = 0; (at = text.find("\n\n", at)) != std::string::npos;) {
    text.erase(at, 1);
  }
  return text;
}

std::string error_of(const std::vector<const char*>& words) {
  try {
    parse(words);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("defaults") {
  const Options options = parse({});
  CHECK(options["layers"] == 10);
  CHECK(options["width"] == 1024);
  CHECK(options.device() == "auto");
  CHECK(options.threads() == 0);
  CHECK(options.json_file().empty());
  CHECK(options.record_file().empty());
  CHECK_FALSE(options.help_wanted());
}

TEST_CASE("both ways to give a value") {
  CHECK(parse({"--layers", "4"})["layers"] == 4);
  CHECK(parse({"--layers=4"})["layers"] == 4);
  CHECK(parse({"--layers=4", "--layers", "5"})["layers"] == 5);
  const Options options =
      parse({"--json", "a=b.json", "--threads=3", "--record=r.json"});
  CHECK(options.json_file() == "a=b.json");
  CHECK(options.record_file() == "r.json");
  CHECK(options.threads() == 3);
}

TEST_CASE("bounds belong to the range") {
  CHECK(parse({"--layers=1"})["layers"] == 1);
  CHECK(parse({"--layers=100000"})["layers"] == 100000);
  CHECK(parse({"--threads=1024"}).threads() == 1024);
}

TEST_CASE("numbers that cannot be used") {
  const std::string range = "an integer from 1 to 100000";
  for (const char* text : {"0", "-3", "100001", "99999999999999999999999"}) {
    CHECK(error_of({"--layers", text}) == std::string("--layers: ") + text +
                                              " is out of range; expected " +
                                              range);
  }
  for (const char* text : {"4x", " 4", "+4", "4.0", "1e3", "four", "-"}) {
    CHECK(error_of({"--layers", text}) ==
          "--layers: expected " + range + ", not '" + text + "'");
  }
  CHECK(error_of({"--threads=0"}) ==
        "--threads: 0 is out of range; expected an integer from 1 to 1024");
}

TEST_CASE("values that are missing") {
  CHECK(error_of({"--layers"}) == "--layers needs a value; see --help");
  CHECK(error_of({"--layers", "--width", "3"}) ==
        "--layers needs a value; see --help");
  CHECK(error_of({"--layers="}) == "--layers needs a value; see --help");
  CHECK(error_of({"--json="}) == "--json needs a value; see --help");
  CHECK(error_of({"--record", ""}) == "--record needs a value; see --help");
  CHECK(error_of({"--json", "-h"}) == "--json needs a value; see --help");
}

TEST_CASE("unknown options name the nearest one") {
  CHECK(error_of({"--layer", "4"}) ==
        "unknown option '--layer'; did you mean '--layers'?");
  CHECK(error_of({"--widht=4"}) ==
        "unknown option '--widht'; did you mean '--width'?");
  CHECK(error_of({"--completely-else"}) ==
        "unknown option '--completely-else'; --help lists all options");
  const std::string lists = "; options begin with --; see --help";
  CHECK(error_of({"4"}) == "unexpected argument '4'" + lists);
  CHECK(error_of({"-l"}) == "unexpected argument '-l'" + lists);
  CHECK(error_of({"--"}) == "unexpected argument '--'" + lists);
  CHECK(error_of({""}) == "unexpected argument ''" + lists);
}

TEST_CASE("devices") {
  CHECK(parse({"--device", "auto"}).device() == "auto");
  CHECK(parse({"--device=cuda-sim"}).device() == "cuda-sim");
  CHECK(parse({"--device=cuda"}).device() == "cuda:0");
  CHECK(parse({"--device", "cuda:12"}).device() == "cuda:12");
  CHECK(parse({"--device=cpu"}).device() == "cpu");
  for (const char* device : {"gpu", "cuda:", "cuda:x", "CPU"}) {
    CHECK(error_of({"--device", device}) ==
          std::string("--device: '") + device +
              "' is not a device; use auto, cpu, cuda, cuda:N or cuda-sim");
  }
}

TEST_CASE("help is asked for") {
  CHECK(parse({"--help"}).help_wanted());
  CHECK(parse({"-h"}).help_wanted());
  CHECK(error_of({"--help=3"}) == "--help takes no value");
}

TEST_CASE("an option the recipe never declared") {
  CHECK_THROWS_WITH_AS(parse({})["depth"],
                       "this recipe has no option 'depth'; declare it where "
                       "run_recipe is called",
                       Error);
}

TEST_CASE("the help names every option, its default and its range") {
  CHECK(without_empty_lines(usage_text("fast", {numbers[0]})) ==
        "Usage: fast [options]\n"
        "Options:\n"
        "  --layers N            number of Linear layers (default 10, 1 to "
        "100000)\n"
        "  --device D            auto, cpu, cuda, cuda:N or cuda-sim (default "
        "auto: a GPU if there is one)\n"
        "  --threads N           threads to use, 1 to 1024 (default "
        "FUSEBOOK_THREADS, else all CPUs)\n"
        "  --json FILE           write the results to FILE\n"
        "  --record FILE         write the output, step by step, to FILE\n"
        "  -h,--help             show this text and exit\n"
        "Exit codes:\n"
        "  0    success\n"
        "  1    the run failed\n"
        "  2    the command line or an environment variable is wrong\n"
        "  3    the device is not available\n"
        "  130  interrupted\n");
}

// ---- options that take a name -----------------------------------------------

namespace {

OptionSet with_choices() {
  return {numbers,
          {{"color", "red", {"red", "green", "dark blue"}, "of the plot"},
           {"policy",
            "promote",
            {"promote", "specialize", "fail_on_recompile", "one_more_policy",
             "and_another_one"},
            "when a number moves"}}};
}

Options parse_choices(std::vector<const char*> words) {
  words.insert(words.begin(), "recipe");
  return parse_options(int(words.size()), words.data(), with_choices());
}

std::string choice_error(const std::vector<const char*>& words) {
  try {
    parse_choices(words);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("a name is one of those that were declared") {
  CHECK(parse_choices({}).choice("color") == "red");
  const Options options =
      parse_choices({"--color", "dark blue", "--policy=specialize"});
  CHECK(options.choice("color") == "dark blue");
  CHECK(options.choice("policy") == "specialize");
  CHECK(options["layers"] == 10);
  CHECK(choice_error({"--color", "gren"}) ==
        "--color: 'gren' is not one of red, green, dark blue; did you mean "
        "'green'?");
  CHECK(choice_error({"--color=mauve"}) ==
        "--color: 'mauve' is not one of red, green, dark blue; choose one of "
        "these");
  CHECK(choice_error({"--color"}) == "--color needs a value; see --help");
  CHECK(choice_error({"--colour", "red"}) ==
        "unknown option '--colour'; did you mean '--color'?");
}

TEST_CASE("a name and a number are asked for as what they are") {
  const std::string undeclared =
      "this recipe has no option 'color'; declare it where run_recipe is "
      "called";
  CHECK_THROWS_WITH_AS(parse_choices({})["color"], undeclared.c_str(), Error);
  CHECK_THROWS_AS(parse_choices({}).choice("layers"), Error);
}

TEST_CASE("the names stand in the usage, in lines that fit") {
  const std::string text = usage_text("fast", with_choices());
  CHECK(text.find("  --color NAME          of the plot (default red), one of\n"
                  "                        red, green, dark blue\n"
                  "  --policy NAME         when a number moves (default "
                  "promote), one of\n"
                  "                        promote, specialize, "
                  "fail_on_recompile,\n"
                  "                        one_more_policy, and_another_one\n"
                  "  --device D") != std::string::npos);
}
