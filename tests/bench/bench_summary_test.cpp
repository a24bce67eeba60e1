#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "bench/promises.h"
#include "bench/reading.h"
#include "bench/steps.h"
#include "bench/summary.h"
#include "fusebook/json/json.h"

using namespace fuse::bench;

namespace {

std::vector<Reading> process(double limit, double compiled) {
  return {{"step", "small", "limit", limit, 4000, "limit", limit},
          {"step", "small", "compiled", compiled, 6000, "limit", limit},
          {"gradients", "small", "compiled", 8, 0, "bare kernel", 2},
          {"host", "10 tensors", "guards", limit / 10, 0}};
}

const Row& row(const std::vector<Row>& rows, const char* variant) {
  const bool host = std::string(variant) == "guards";
  const Row* found = host ? find_row(rows, "host", "10 tensors", variant)
                          : find_row(rows, "step", "small", variant);
  REQUIRE(found != nullptr);
  return *found;
}

}  // namespace

TEST_CASE("a figure is divided by its divisor in each process") {
  const auto rows = summarise({process(2, 6), process(3, 12), process(8, 40)});
  CHECK(row(rows, "limit").us == 3);  // of 2, 3, 8
  CHECK(row(rows, "limit").ratio == 1);
  CHECK(row(rows, "compiled").us == 12);
  CHECK(row(rows, "compiled").ratio == 4);  // of 3, 4, 5
  CHECK(row(rows, "compiled").divisor == "limit");
  CHECK(row(rows, "compiled").gb_per_s == 6000 / 12.0 / 1e3);
  CHECK(row(rows, "guards").us == doctest::Approx(0.3));
  CHECK(row(rows, "guards").ratio == 0);
  CHECK(row(rows, "guards").divisor.empty());
  CHECK(rows.size() == 4);
  CHECK(find_row(rows, "step", "small", "guards") == nullptr);
  const Row* const other = find_row(rows, "gradients", "small", "compiled");
  REQUIRE(other != nullptr);
  CHECK(other->ratio == 4);
  CHECK(other->divisor == "bare kernel");
}

TEST_CASE("a figure that one process lacks is taken from the others") {
  auto lacking = process(1, 1);
  lacking.erase(lacking.begin() + 1);
  const auto rows = summarise({process(2, 6), lacking});
  CHECK(row(rows, "compiled").us == 6);
  CHECK(row(rows, "compiled").ratio == 3);
}

TEST_CASE("JSON has a list for each kind, and null for what is unknown") {
  auto readings = process(2, 6);
  readings.push_back(
      {"step", "small", "torch", 5, 0, "limit of our own process", 2});
  readings.push_back({"tail", "small", "compiled", 7, 0, "limit", 2});
  const fuse::ParsedJson json =
      fuse::parse_json(json_of(summarise({readings}), 3), 3);
  CHECK(json.at("processes") == 3);
  const auto has = [&](const char* list, const char* row) {
    const fuse::ParsedJson& rows = json.at(list);
    return std::find(rows.begin(), rows.end(), fuse::ParsedJson::parse(row)) !=
           rows.end();
  };
  CHECK(has("rows", R"({"case": "small", "variant": "compiled", "us": 6,
                        "ratio": 3, "divided_by": "limit", "gb_per_s": 1})"));
  CHECK(has("rows", R"({"case": "small", "variant": "torch", "us": 5,
                        "ratio": 2.5, "divided_by": "limit of our own process",
                        "gb_per_s": null})"));
  REQUIRE(json.at("tail").size() == 1);
  CHECK(json.at("tail")[0].at("us") == 7);
  REQUIRE(json.at("gradients").size() == 1);
  CHECK(json.at("gradients")[0].at("ratio") == 4);
  CHECK(json.at("gradients")[0].at("divided_by") == "bare kernel");
  CHECK(has("host", R"({"case": "10 tensors", "variant": "guards",
                        "us": 0.2})"));
}

TEST_CASE("of memory the most counts, and it is a promise") {
  const auto peak = [](std::int64_t bytes) {
    return std::vector<Reading>{{"memory", "GPT-2 small", peak_name, 0, bytes}};
  };
  const auto good = summarise({peak(3000), peak(4'000'000'000), peak(5)});
  REQUIRE(good.size() == 1);
  CHECK(good[0].bytes == 4'000'000'000);
  CHECK(check_promises(good, 0));
  CHECK_FALSE(check_promises(summarise({peak(4'000'000'001)}), 1));
  const fuse::ParsedJson json = fuse::parse_json(json_of(good, 1), 3);
  CHECK(json.at("memory")[0].at("bytes") == 4'000'000'000);
}

TEST_CASE("lines that are no readings are passed over") {
  CHECK_FALSE(parse_reading("fusebook: warning: something"));
  CHECK_FALSE(parse_reading("reading\tstep\tsmall"));
  const auto reading = parse_reading("reading\tstep\t10 x 3\tby hand\t1.5\t12");
  REQUIRE(reading);
  CHECK(reading->of_case == "10 x 3");
  CHECK(reading->us == 1.5);
  CHECK(reading->bytes == 12);
  CHECK(reading->divisor.empty());
  const auto divided = parse_reading(
      "reading\tgroups\t10 x 3\t2 groups\t1.5\t12\tbare kernel\t0.5");
  REQUIRE(divided);
  CHECK(divided->divisor == "bare kernel");
  CHECK(divided->divisor_us == 0.5);
}

TEST_CASE("promises compare with the limit, with peers, and with a time") {
  const auto large = [](double compiled, double hand) {
    const char* const name = "10 x 1024 x 1024";
    return std::vector<Row>{
        {"step", name, "limit", 100, 1, 1},
        {"step", name, "by hand", hand, hand / 100, 1},
        {"step", name, "compiled", compiled, compiled / 100, 1},
        {"step", name, "foreach", 270, 2.7, 1}};
  };
  CHECK(check_promises(large(104, 102), 0));
  CHECK_FALSE(check_promises(large(106, 105), 0));
  CHECK(check_promises(large(106, 105), 0.1));
  CHECK_FALSE(check_promises(large(104, 100), 0));
  auto tricked = large(104, 102);
  tricked.back().ratio = 7.8;  // an eager step that maps new memory
  CHECK_FALSE(check_promises(tricked, 0));
  const auto first = [](double us) {
    return std::vector<Row>{
        {"compile", "10 tensors", "first step, from disk", us, 0, 0}};
  };
  CHECK(check_promises(first(999), 0));
  CHECK_FALSE(check_promises(first(1001), 0));
  // Compared with the kernel in the same caches.
  const auto gradients = [](double all_new, double one_new) {
    const auto row = [](const char* variant, double ratio) {
      return Row{"gradients", "10000 x 64", variant, 20 * ratio, ratio,
                 0,           "bare kernel"};
    };
    return std::vector<Row>{
        row("bare kernel", 0.5), row("bare kernel, caches used by others", 1),
        row("kept", 1.2), row("all new", all_new), row("one new", one_new)};
  };
  CHECK(check_promises(gradients(1.9, 1.7), 0));
  CHECK_FALSE(check_promises(gradients(2.1, 1.7), 0));
  CHECK_FALSE(check_promises(gradients(1.9, 1.9), 0));
  const auto groups = [](double first_us, double moved) {
    const auto row = [](const char* variant, double us) {
      return Row{"groups", "10000 x 64", variant, us, us / 100,
                 0,        "bare kernel"};
    };
    return std::vector<Row>{row("bare kernel, 10000 rates, moved", 200),
                            row("10000 groups, tensors, moved", moved),
                            row("first call, 10000 groups, tensors", first_us)};
  };
  CHECK(check_promises(groups(99e3, 590), 0));
  CHECK_FALSE(check_promises(groups(101e3, 590), 0));
  CHECK_FALSE(check_promises(groups(99e3, 610), 0));
  const auto cold = [](double many) {
    return std::vector<Row>{{"compile", "10 tensors", "cold", 100, 0, 0},
                            {"compile", "10000 tensors", "cold", many, 0, 0}};
  };
  CHECK(check_promises(cold(109), 0));
  CHECK_FALSE(check_promises(cold(111), 0));
}
