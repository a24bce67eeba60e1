#include "fusebook/json/json.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "fusebook/support/error.h"
#include "support/testing.h"

using namespace fuse;
using testing::contains;
using testing::message_of;

namespace {

std::string read_string(const std::string& text) {
  return parse_json(text, 3).get<std::string>();
}

std::string error_of(const std::string& text, int depth = 3) {
  return message_of<Error>([&] { parse_json(text, depth); });
}

}  // namespace

TEST_CASE("strings are read as they were meant") {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {R"("")", ""},
      {R"( "plain" )", "plain"},
      {R"("\"\\\/\b\f\n\r\t")", "\"\\/\b\f\n\r\t"},
      {R"("\u0041\u00e9\u20AC")", "A\u00e9\u20ac"},
      {R"("\ud83d\ude00")", "\U0001F600"},
      {"\"\u00e9\u20ac\U0001F600\"", "\u00e9\u20ac\U0001F600"},
  };
  for (const auto& [text, meant] : cases) {
    CAPTURE(text);
    CHECK(read_string(text) == meant);
  }
  // A zero is a character like others.
  CHECK(read_string(R"("a\u0000b")") == std::string("a\0b", 3));
}

TEST_CASE("what is written is read back") {
  std::string all;
  for (int c = 0; c < 0x80; ++c) all += char(c);
  all += "\u00e9\u20ac\U0001F600";
  CHECK(read_string(json_string(all)) == all);
  CHECK(json_string("a\"b\\c\n\t\x01") == "\"a\\\"b\\\\c\\n\\t\\u0001\"");
  CHECK(json_string("\u00e9") == "\"\u00e9\"");
}

TEST_CASE("bytes that are not UTF-8 are replaced") {
  const std::string replaced = "\xEF\xBF\xBD";
  CHECK(json_string("a\xFFz") == "\"a" + replaced + "z\"");
  CHECK(json_string("\xC3") == "\"" + replaced + "\"");
  // An overlong slash, byte by byte.
  CHECK(json_string("\xC0\xAF") == "\"" + replaced + replaced + "\"");
  CHECK(json_text("\xC3") == "\"" + replaced + "\"\n");
}

TEST_CASE("what is not JSON is refused, with the place") {
  for (const std::string text : {"",
                                 "x",
                                 "\"",
                                 "\"\\",
                                 "\"\\\"",
                                 "\"\\x\"",
                                 "\"\\u12\"",
                                 "\"\\u12g4\"",
                                 "\"\\u-123\"",
                                 "\"\n\"",
                                 "\"\xff\"",
                                 "\"\xc3\"",
                                 "\"\xed\xa0\x80\"",
                                 "\"\\ud800\"",
                                 "\"\\ud800x\"",
                                 "\"\\ud800\\u0041\"",
                                 "\"\\udc00\"",
                                 "\"a\" x",
                                 "'a'",
                                 "01",
                                 "00",
                                 "+1",
                                 "0x1",
                                 "1e999",
                                 "[",
                                 "{",
                                 "}",
                                 "{,}",
                                 "{\"a\"}",
                                 "{\"a\":}",
                                 "{\"a\":[1,]}",
                                 "{\"a\":[1],}",
                                 "{\"a\":[,1]}",
                                 "{\"a\":[1 2]}",
                                 "{\"a\":[1]]",
                                 "{\"a\":[1]",
                                 "{\"a\":[1}",
                                 "{a:[1]}",
                                 "{} {}",
                                 "\xEF\xBB\xBF{}",
                                 "// {}",
                                 "{} // x"}) {
    CAPTURE(text);
    CHECK(contains(error_of(text), ", at byte "));
  }
  CHECK(error_of("  x") ==
        "syntax error while parsing value - invalid literal, at byte 3");
  // The parser itself would end there.
  CHECK(error_of(std::string("{}\0", 3)) == "a zero byte, at byte 2");
  CHECK(error_of(std::string("{}\0}", 4)) == "a zero byte, at byte 2");
  // What it stumbled over may be long, or no text at all.
  CHECK(error_of("\"" + std::string(100000, 'x')).size() < 200);
  CHECK_FALSE(contains(error_of("\"\xff\""), "\xff"));
}

TEST_CASE("objects and arrays") {
  const ParsedJson read =
      parse_json(" { \"a\" : [ ] ,\t\"b\":[1,2 , 3]\r\n} ", 3);
  CHECK(read.size() == 2);
  CHECK(read.at("a").empty());
  CHECK(read.at("b").get<std::vector<int>>() == std::vector<int>{1, 2, 3});
  CHECK(parse_json("9223372036854775807", 1) ==
        std::int64_t(9223372036854775807));
}

TEST_CASE("a member that stands twice in an object is refused") {
  CHECK(error_of("{\"a\":[1],\"a\":[2]}") == "\"a\" appears twice, at byte 12");
  CHECK(error_of("{\"a\":1,\"\\u0061\":2}") ==
        "\"a\" appears twice, at byte 15");
  CHECK(error_of("{\"a\":{\"b\":1},\"c\":{\"b\":1,\"b\":1}}") ==
        "\"b\" appears twice, at byte 27");
  CHECK(parse_json("{\"a\":{\"a\":1},\"b\":[{\"a\":1},{\"a\":2}]}", 3).size() ==
        2);
}

TEST_CASE("brackets within brackets are counted while they are read") {
  CHECK(parse_json("{\"a\":[[1]]}", 3).size() == 1);
  CHECK(error_of("{\"a\":[[{}]]}") == "too deeply nested, at byte 8");
  CHECK(error_of(std::string(1000000, '[')) == "too deeply nested, at byte 4");
  CHECK(error_of("[]", 0) == "too deeply nested, at byte 1");
}

TEST_CASE("numbers are as short as they can be") {
  CHECK(json_number(747.25).dump() == "747.25");
  CHECK(json_number(3).dump() == "3");
  CHECK(json_number(-4e9).dump() == "-4000000000");
  CHECK(json_number(0.1).dump() == "0.1");
  CHECK(json_number(1e300).dump() == "1e+300");
  CHECK(json_number(-0.0).dump() == "-0.0");
  CHECK(json_number(9007199254740992.0).dump() == "9007199254740992");
  CHECK(json_number(__builtin_nan("")).dump() == "null");
  CHECK(json_number(-__builtin_inf()).dump() == "null");
  for (const double value : {1.0 / 3, 5e-324, 1.7976931348623157e308, 1e22}) {
    CHECK(parse_json(json_number(value).dump(), 1).get<double>() == value);
  }
}

TEST_CASE("a file keeps the order in which members were added") {
  const Json json = {{"b", 1}, {"a", {{"z", true}, {"y", "text"}}}};
  CHECK(json_text(json) ==
        "{\n"
        "  \"b\": 1,\n"
        "  \"a\": {\n"
        "    \"z\": true,\n"
        "    \"y\": \"text\"\n"
        "  }\n"
        "}\n");
}
