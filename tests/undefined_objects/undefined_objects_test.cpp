// What every public function does with an object in which nothing is: one that
// was made without arguments, was moved from, or is undefined. It throws an
// Error that names the call, or has an answer that its docstring gives.
#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <exception>
#include <string>

#include "undefined_objects/rows.h"

using namespace fuse;

namespace undefined_objects {
namespace {

std::size_t kind = 0;  // of undefined()
constexpr std::size_t kinds = 4;

Tensor missing_gradient() {
  Tensor p = tensor({1, 2});
  p.set_grad(tensor({3, 4}));
  const Adam adam({p});
  adam.zero_grad();
  return p.grad();
}

Tensor missing_state() {
  Tensor p = tensor({1, 2});
  p.set_grad(tensor({3, 4}));
  Adam adam({p});
  adam.step();
  return adam.state(p, "typo");
}

/// The message of the Error that a call throws; empty if it throws none.
std::string message_of(const Row& row) {
  try {
    row.call();
  } catch (const Error& error) {
    return error.what();
  } catch (const std::exception& error) {
    return std::string("no Error of the library: ") + error.what();
  }
  return "";
}

void check(const Row& row) {
  INFO(row.name);
  const std::string message = message_of(row);
  if (row.answers) {
    CHECK(message == "");
    return;
  }
  const std::string start = row.says.empty() ? row.name + ": " : row.says;
  INFO("expected: " << start);
  CHECK(message.substr(0, start.size()) == start);
}

void check_all(const Rows& rows) {
  for (const Row& row : rows) check(row);
}

}  // namespace

Tensor undefined() {
  switch (kind) {
    case 0:
      return {};
    case 1:
      return left_of(tensor(1.0));
    case 2:
      return missing_gradient();
    default:
      return missing_state();
  }
}

TEST_SUITE("undefined_objects") {
  TEST_CASE("tensors") {
    for (kind = 0; kind < kinds; ++kind) check_all(rows_of_tensors());
    kind = 0;
  }

  TEST_CASE("functions of tensors") {
    for (kind = 0; kind < kinds; ++kind) {
      check_all(rows_of_functions_of_tensors());
    }
    kind = 0;
  }

  TEST_CASE("lists, operands and numbers") { check_all(rows_of_lists()); }
  TEST_CASE("compiled functions and kernels") {
    check_all(rows_of_compiled_functions());
  }
  TEST_CASE("models") { check_all(rows_of_models()); }
  TEST_CASE("optimizers and checkpoints") { check_all(rows_of_optimizers()); }
  TEST_CASE("scalers") { check_all(rows_of_scalers()); }
  TEST_CASE("schedulers") { check_all(rows_of_schedulers()); }
  TEST_CASE("what recipes measure and print with") {
    check_all(rows_of_tools());
  }

  TEST_CASE("what was undefined can be assigned") {
    Tensor t = left_of(tensor(1.0));
    t = tensor(2.0);
    CHECK(t.item() == 2);
    TensorList list = left_of(TensorList({t}));
    list = TensorList({t});
    CHECK(list.size() == 1);
    auto step = compile(std::function<void()>([] {}));
    auto taken = std::move(step);
    step = taken;
    step();
  }
}

}  // namespace undefined_objects
