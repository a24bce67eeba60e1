// Every operation with a number for each tensor in one of its operands: it counts as
// that number in each element does. In a loop it is the same all the time, and a
// compiler that draws more from that than is true, with a NaN above all, is found here.
#include <doctest/doctest.h>

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "fusebook/compile/compile.h"
#include "fusebook/foreach/foreach.h"
#include "fusebook/ops/ops.h"
#include "support/reference.h"
#include "support/testing.h"

using namespace fuse;
using namespace testing;

namespace {

using Numbers = std::vector<double>;

// A whole number of packs on a GPU, and one that is not.
constexpr std::array<int, 2> sizes = {16, 7};

// Of an operation of one operand, which is elements.
constexpr int none = -1;

// An operation whose operand `place` is a number for each tensor. The others are
// elements, the first of them the result, too.
class Case {
 public:
  Case(OpCode op, int place, DType dtype, Random& random)
      : op_(op), place_(place), dtype_(dtype) {
    std::vector<Tensor> numbers;
    for (const double number : special_values<double>()) {
      for (const int size : sizes) {
        numbers_.push_back(rounded(number));
        numbers.push_back(tensor(numbers_.back(), DType::float64));
        sizes_.push_back(size);
      }
    }
    for (int k = 0; k < info(op).arity; ++k) {
      lists_.push_back(k == place ? TensorList::per_tensor(numbers)
                                  : elements_of(random));
    }
  }

  void reset() const {
    for (std::size_t e = 0; e < sizes_.size(); ++e) {
      Tensor each = target()[e];
      each.copy_(first_[e]);
    }
  }

  void step() const {
    std::vector<Operand> operands;
    for (const TensorList& list : lists_) operands.emplace_back(list);
    std::vector<const Operand*> in;
    for (const Operand& operand : operands) in.push_back(&operand);
    foreach_apply_(op_, target(), in, std::source_location::current());
  }

  void check(const char* mode) const {
    for (std::size_t e = 0; e < sizes_.size(); ++e) {
      const Numbers actual = target()[e].to_vector();
      for (std::size_t i = 0; i < actual.size(); ++i) {
        INFO(std::string(info(op_).name)
             << ", operand " << place_ << ", " << std::string(mode)
             << ", number " << numbers_[e] << ", element " << i << " of "
             << sizes_[e]);
        const double expected = expected_at(e, i);
        CHECK(same_value(actual[i], expected));
      }
    }
  }

 private:
  double rounded(double value) const { return reduced::round(dtype_, value); }

  TensorList elements_of(Random& random) {
    std::vector<Tensor> tensors;
    std::vector<Numbers> values;
    for (const int size : sizes_) {
      Numbers& each = values.emplace_back();
      for (int i = 0; i < size; ++i) {
        each.push_back(rounded(any_value<double>(random)));
      }
      tensors.push_back(tensor(each, dtype_));
    }
    if (first_.empty()) {
      for (const Tensor& each : tensors) first_.push_back(each.clone());
    }
    values_.push_back(values);
    return TensorList(std::move(tensors));
  }

  const TensorList& target() const { return lists_[place_ == 0 ? 1 : 0]; }

  double expected_at(std::size_t e, std::size_t i) const {
    std::array<double, 4> x = {};
    std::size_t next = 0;
    for (int k = 0; k < info(op_).arity; ++k) {
      x[std::size_t(k)] = k == place_ ? numbers_[e] : values_[next++][e][i];
    }
    return reference::apply(op_, dtype_, x);
  }

  OpCode op_;
  int place_;
  DType dtype_;
  Numbers numbers_;
  std::vector<int> sizes_;
  std::vector<TensorList> lists_;
  std::vector<std::vector<Numbers>> values_;  // of each list of elements
  std::vector<Tensor> first_;                 // the target's, before the step
};

std::vector<Case> all_cases(DType dtype) {
  Random random(1);
  std::vector<Case> cases;
  for (std::size_t op = 0; op < op_table().size(); ++op) {
    const int arity = info(OpCode(op)).arity;
    if (arity == 1) cases.emplace_back(OpCode(op), none, dtype, random);
    for (int place = 0; arity > 1 && place < arity; ++place) {
      cases.emplace_back(OpCode(op), place, dtype, random);
    }
  }
  return cases;
}

// All of them in one step, so that there is one kernel to compile.
template <class Run>
void check_all(const char* mode, Run run) {
  for (const DType dtype :
       {DType::float32, DType::float64, DType::bfloat16, DType::float16}) {
    const std::vector<Case> cases = all_cases(dtype);
    REQUIRE(cases.size() > 100);
    for (const Case& each : cases) each.reset();
    run([&] {
      for (const Case& each : cases) each.step();
    });
    for (const Case& each : cases) each.check(mode);
  }
}

}  // namespace

TEST_CASE("a number for a tensor counts as the same number in each element") {
  check_all("eager", [](auto step) { step(); });
  for (const auto& [mode, backend] :
       {std::pair{"interpreted", Backend::interpreted},
        std::pair{"compiled", Backend::compiled},
        std::pair{"on a simulated GPU", Backend::simulated}}) {
    check_all(mode, [backend = backend](auto step) {
      auto fused = compile(step, {.fullgraph = true, .backend = backend});
      fused();
      CHECK(fused.counters().launches >= 1);
    });
  }
}
