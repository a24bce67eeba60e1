#include "fusebook/support/json_reader.h"

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

#include "fusebook/support/error.h"
#include "fusebook/support/json.h"
#include "support/testing.h"

using namespace fuse;
using testing::message_of;

namespace {

std::string read_string(const std::string& text) {
  JsonReader reader(text);
  std::string value = reader.string();
  reader.end();
  return value;
}

std::int64_t read_count(const std::string& text) {
  JsonReader reader(text);
  const std::int64_t value = reader.count();
  reader.end();
  return value;
}

std::string error_of_string(const std::string& text) {
  return message_of<Error>([&] { read_string(text); });
}

std::string error_of_count(const std::string& text) {
  return message_of<Error>([&] { read_count(text); });
}

// {"key": [count, ...], ...} as text without blanks.
std::string read_object(const std::string& text) {
  JsonReader reader(text);
  std::string seen;
  reader.object([&](const std::string& key) {
    seen += key + "=";
    reader.array([&] { seen += std::to_string(reader.count()) + ","; });
  });
  reader.end();
  return seen;
}

std::string error_of_object(const std::string& text) {
  return message_of<Error>([&] { read_object(text); });
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

TEST_CASE("what json_string writes is read back") {
  std::string all;
  for (int c = 0; c < 0x80; ++c) all += char(c);
  all += "\u00e9\u20ac\U0001F600";
  CHECK(read_string(json_string(all)) == all);
}

TEST_CASE("strings that are none are refused, with the place") {
  for (const std::string text :
       {"", "x", "\"", "\"\\", "\"\\\"", "\"\\x\"", "\"\\u12\"", "\"\\u12g4\"",
        "\"\\u-123\"", "\"\n\"", "\"\xff\"", "\"\xc3\"", "\"\xed\xa0\x80\"",
        "\"\\ud800\"", "\"\\ud800x\"", "\"\\ud800\\u0041\"", "\"\\udc00\"",
        "\"a\" x", "'a'"}) {
    CAPTURE(text);
    CHECK(testing::contains(error_of_string(text), ", at byte "));
  }
  CHECK(error_of_string("  x") == "expected '\"', at byte 2");
}

TEST_CASE("counts are whole numbers of 63 bits") {
  CHECK(read_count("0") == 0);
  CHECK(read_count(" 42\n") == 42);
  CHECK(read_count("9223372036854775807") == 9223372036854775807);
  for (const std::string text : {"", "-1", "-0", "01", "00", "+1", "1.5", "1e3",
                                 "9223372036854775808", "\"1\"", "0x1"}) {
    CAPTURE(text);
    CHECK(testing::contains(error_of_count(text), ", at byte "));
  }
}

TEST_CASE("objects and arrays") {
  CHECK(read_object("{}").empty());
  CHECK(read_object(" { \"a\" : [ ] ,\t\"b\":[1,2 , 3]\r\n} ") == "a=b=1,2,3,");
  for (const std::string text :
       {"", "[", "{", "}", "{,}", "{\"a\"}", "{\"a\":}", "{\"a\":[1,]}",
        "{\"a\":[1],}", "{\"a\":[,1]}", "{\"a\":[1 2]}", "{\"a\":[1]]",
        "{\"a\":[1]", "{\"a\":[1}", "{a:[1]}", "{} {}"}) {
    CAPTURE(text);
    CHECK(testing::contains(error_of_object(text), ", at byte "));
  }
  CHECK(error_of_object("{\"a\":[1],\"a\":[2]}") ==
        "\"a\" stands here twice, at byte 12");
}
