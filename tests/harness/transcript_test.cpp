#include "fusebook/harness/transcript.h"

#include <doctest/doctest.h>

#include <string>

#include "fusebook/support/error.h"
#include "fusebook/support/number_text.h"

using namespace fuse;

TEST_CASE("numbers in their shortest exact form") {
  CHECK(number_text(0.1) == "0.1");
  CHECK(number_text(0.1F) == "0.1");
  CHECK(number_text(double(0.1F)) == "0.10000000149011612");
  CHECK(number_text(0.003333333333333333) == "0.003333333333333333");
  CHECK(number_text(1.0) == "1");
  CHECK(number_text(-0.0) == "-0");
  CHECK(number_text(100000.0) == "100000");
  CHECK(number_text(1e15) == "1000000000000000");
  CHECK(number_text(1e16) == "1e+16");
  CHECK(number_text(0.0001) == "0.0001");
  CHECK(number_text(1e-8) == "1e-08");
  CHECK(number_text(-__builtin_nan("")) == "nan");
  CHECK(number_text(-__builtin_inf()) == "-inf");
  CHECK(number_text(1024) == "1024");
}

TEST_CASE("quantities with four digits and their unit") {
  CHECK(quantity_text(747.2345, "us") == "747.2 us");
  CHECK(quantity_text(12345.6, "us") == "12346 us");
  CHECK(quantity_text(1, "ms") == "1.000 ms");
  CHECK(quantity_text(9.99996, "ms") == "10.00 ms");
  CHECK(quantity_text(0.0123456, "s") == "0.01235 s");
  CHECK(quantity_text(0.0000123456, "s") == "1.235e-05 s");
  CHECK(quantity_text(2.4142, "x") == "2.41x");
  CHECK(quantity_text(0.99951, "x") == "1.00x");
  CHECK(quantity_text(123.4, "x") == "123x");
  CHECK(quantity_text(3.5, "") == "3.500");
}

TEST_CASE("text is escaped across pieces") {
  Record record;
  record.add_text("a@");
  record.add_text("{b} @@{ {} @");
  CHECK(record.steps().back().text == "a@@{b} @@@{ {} @");
  CHECK_THROWS_WITH_AS(record.add_placeholder("x"),
                       "the text before the value 'x' must not end in '@'",
                       Error);
  record.add_text(" ");
  record.add_placeholder("x");
  CHECK(record.steps().back().text == "a@@{b} @@@{ {} @ @{x}");
}

TEST_CASE("steps have titles of their own") {
  Record record;
  CHECK(record.title().empty());
  record.start_step("One");
  CHECK(record.title() == "One");
  CHECK_THROWS_WITH_AS(record.start_step("One"),
                       "the step title 'One' is used twice", Error);
  CHECK_THROWS_AS(record.start_step(""), Error);
}

TEST_CASE("names of values") {
  Record record;
  record.add_name("eager_us");
  CHECK_THROWS_WITH_AS(record.add_name("eager_us"),
                       "the value name 'eager_us' is used twice", Error);
  CHECK_THROWS_WITH_AS(record.add_name("device"),
                       "the value name 'device' is reserved for the run itself",
                       Error);
  for (const char* name : {"", "Eager", "1st", "a-b", "_a", "a b"}) {
    CHECK_THROWS_AS(record.add_name(name), Error);
  }
}
