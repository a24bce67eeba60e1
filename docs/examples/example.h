#pragma once

#include "fusebook/fusebook.h"

/// A short program of the API reference: `.. api-example:: NAME` shows its body
/// and what it printed.
struct Example {
  const char* name;
  void (*run)();
};

/// All of them; their order does not matter.
std::vector<Example>& examples();

struct AddExample {
  explicit AddExample(const Example& example) { examples().push_back(example); }
};

#define EXAMPLE(name)                                          \
  static void example_##name();                                \
  static const AddExample add_##name{{#name, example_##name}}; \
  static void example_##name()
