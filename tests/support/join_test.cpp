#include "fusebook/support/join.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using fuse::add_item;
using fuse::join;

TEST_CASE("items with something between them") {
  using Words = std::vector<std::string>;
  CHECK(join(Words{}).empty());
  CHECK(join(Words{"a"}) == "a");
  CHECK(join(Words{"a", "b", "c"}) == "a, b, c");
  CHECK(join(Words{"", "b", ""}, " ") == " b ");
  const char* const names[] = {"x", "y"};
  CHECK(join(names, "/") == "x/y");
  CHECK(join(std::vector<int>{3, 4}, "+",
             [](int number) { return std::to_string(number); }) == "3+4");
}

TEST_CASE("a list that grows") {
  std::string list;
  add_item(list, "a");
  add_item(list, "b");
  add_item(list, "c", "; ");
  CHECK(list == "a, b; c");
}
