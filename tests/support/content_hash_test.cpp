#include "fusebook/support/content_hash.h"

#include <doctest/doctest.h>

#include <cstddef>
#include <string>

using namespace fuse;

TEST_CASE("a hash in pieces is that of the whole") {
  std::string text;
  for (int i = 0; i < 300; ++i) text += char(i * 37);
  for (const std::size_t size : {0, 1, 63, 64, 65, 128, 300}) {
    const std::string all = text.substr(0, size);
    for (std::size_t first = 0; first <= size; ++first) {
      for (const std::size_t second : {0, 1, 7, 64, 100}) {
        ContentHash hash(5);
        hash.add(all.substr(0, first));
        ContentHash later = hash;
        later.add(std::string_view(all).substr(first, second));
        if (first + second < size) later.add(all.substr(first + second));
        CHECK(later.value() == content_hash(all, 5));
        CHECK(hash.value() == content_hash(all.substr(0, first), 5));
      }
    }
  }
}

// Files have it.
TEST_CASE("a hash stays what it was") {
  CHECK(hex_digits(content_hash("")) == "66b3871905befb68");
  CHECK(hex_digits(content_hash(std::string(100, 'x'), 1)) ==
        "dc51549f5c7adfb8");
}
