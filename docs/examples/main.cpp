#include <algorithm>
#include <cstdio>
#include <exception>
#include <string_view>

#include "example.h"

std::vector<Example>& examples() {
  static std::vector<Example> all;
  return all;
}

/// Runs every example, each after a line with its name.
int main() {
  try {
    std::ranges::sort(examples(), {}, [](const Example& each) {
      return std::string_view(each.name);
    });
    for (const Example& each : examples()) {
      fuse::print("== ", each.name);
      each.run();
    }
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "examples: %s\n", error.what());
    return 1;
  }
}
