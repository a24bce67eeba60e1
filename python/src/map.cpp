#include "map.h"

#include <nanobind/operators.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "arrays.h"
#include "caller_streams.h"
#include "fusebook/compile/compile.h"
#include "fusebook/foreach/foreach_map.h"
#include "fusebook/reports/counters.h"
#include "messages.h"

namespace nb = nanobind;

namespace fuse::python {
namespace {

// A compiled call of a function of elements, with lists of arrays. What it
// recorded is guarded: a function that does something else is compiled anew.
class Map {
 public:
  Map()
      : step_(compile(std::function<void()>([this] { trace(); }),
                      {.name = "foreach_map"}, here())) {}

  // The results, a list of arrays each. With outputs, they are stored there.
  std::vector<std::vector<Array>> call(nb::callable function,
                                       const nb::list& operands,
                                       std::size_t outputs) {
    if (function_.is_valid()) {
      throw Error("foreach_map: the function calls foreach_map with itself");
    }
    const Clear clear{*this};
    const CallerStreams streams;
    function_ = std::move(function);
    outputs_ = outputs;
    for (std::size_t k = 0; k < operands.size(); ++k) {
      operands_.push_back(operand(operands[k], k, k < outputs));
    }
    without_place_in_errors([&] { step_(); });
    std::vector<std::vector<Array>> arrays;
    for (const TensorList& list : results_) {
      std::vector<Array>& own = arrays.emplace_back();
      for (const Tensor& tensor : list) own.push_back({tensor});
    }
    return arrays;
  }
  const Counters& counters() const { return step_.counters(); }

 private:
  // Nothing of a call is kept, even of one that fails.
  struct Clear {
    Map& map;
    ~Clear() {
      map.function_.reset();
      map.operands_.clear();
      map.results_.clear();
    }
  };

  static MapOperand operand(nb::handle given, std::size_t k, bool writes) {
    if (!nb::isinstance<nb::list>(given)) {
      return {nb::cast<double>(given), here()};
    }
    std::vector<Tensor> tensors;
    for (const nb::handle each : nb::cast<nb::list>(given)) {
      const std::string what = "foreach_map: operand " + std::to_string(k + 1) +
                               ", array " + std::to_string(tensors.size());
      tensors.push_back(tensor_of(each, what.c_str(), writes));
    }
    return {std::move(tensors), here()};
  }

  void trace() {
    std::vector<const Operand*> pointers(operands_.size());
    const MapCall call(outputs_ == 0 ? "foreach_map" : "foreach_map_",
                       operands_, pointers, outputs_);
    std::vector<Element> results = results_of(call);
    if (outputs_ > 0) return call.store(results);
    for (std::size_t k = 0; k < results.size(); ++k) {
      results_.push_back(call.list_of(results, k));
    }
  }

  std::vector<Element> results_of(const MapCall& call) {
    const MapScope scope(call.callee(), call.operands());
    nb::list arguments;
    for (std::size_t k = 0; k < operands_.size(); ++k) {
      arguments.append(call.argument(k));
    }
    const nb::object result = function_(*arguments);
    if (result.is_none()) call.refuse_nothing();
    std::vector<Element> results;
    if (nb::isinstance<nb::tuple>(result)) {
      for (const nb::handle each : nb::cast<nb::tuple>(result)) {
        results.push_back(element_of(each));
      }
    } else {
      results.push_back(element_of(result));
    }
    return results;
  }

  static Element element_of(nb::handle result) {
    Element element(0.0);
    if (nb::try_cast(result, element)) return element;
    throw Error("foreach_map: the function returned " +
                nb::cast<std::string>(nb::repr(result)) +
                "; let it return an element, or a tuple of elements");
  }

  nb::object function_;
  std::vector<MapOperand> operands_;
  std::size_t outputs_ = 0;
  std::vector<TensorList> results_;
  Compiled<std::function<void()>> step_;
};

[[noreturn]] bool refuse_value(const Element&) {
  throw Error(
      "foreach_map: an element has no value yet, so it cannot be tested "
      "or printed; choose with where(condition, a, b)");
}

using E = const Element&;
// For each operation, what adds it to a module.
constexpr void (*operations[])(nb::module_&) = {
#define FUSE_DEFINE_1(name) \
  [](nb::module_& ops) { ops.def(#name, [](E a) { return name(a); }); },
#define FUSE_DEFINE_2(name) \
  [](nb::module_& ops) { ops.def(#name, [](E a, E b) { return name(a, b); }); },
#define FUSE_DEFINE_3(name)                                      \
  [](nb::module_& ops) {                                         \
    ops.def(#name, [](E a, E b, E c) { return name(a, b, c); }); \
  },
#define FUSE_DEFINE_4(name)                                              \
  [](nb::module_& ops) {                                                 \
    ops.def(#name, [](E a, E b, E c, E d) { return name(a, b, c, d); }); \
  },
#define OP(name, arity, ...) FUSE_DEFINE_##arity(name)
#include "fusebook/ops/ops.def"
#undef OP
#undef FUSE_DEFINE_1
#undef FUSE_DEFINE_2
#undef FUSE_DEFINE_3
#undef FUSE_DEFINE_4
};

}  // namespace

void define_map(nb::module_& module) {
  nb::class_<Element>(module, "Element")
      .def(nb::init<double>())
      .def("__add__", [](E a, E b) { return a + b; })
      .def("__radd__", [](E a, E b) { return b + a; })
      .def("__sub__", [](E a, E b) { return a - b; })
      .def("__rsub__", [](E a, E b) { return b - a; })
      .def("__mul__", [](E a, E b) { return a * b; })
      .def("__rmul__", [](E a, E b) { return b * a; })
      .def("__truediv__", [](E a, E b) { return a / b; })
      .def("__rtruediv__", [](E a, E b) { return b / a; })
      .def("__pow__", [](E a, E b) { return pow(a, b); })
      .def("__rpow__", [](E a, E b) { return pow(b, a); })
      .def("__neg__", [](E a) { return -a; })
      .def("__abs__", [](E a) { return abs(a); })
      .def("__lt__", [](E a, E b) { return a < b; })
      .def("__le__", [](E a, E b) { return a <= b; })
      .def("__gt__", [](E a, E b) { return a > b; })
      .def("__ge__", [](E a, E b) { return a >= b; })
      .def("__eq__", [](E a, E b) { return a == b; })
      .def("__ne__", [](E a, E b) { return a != b; })
      .def("__bool__", &refuse_value)
      .def("__float__", &refuse_value)
      .def("item", &refuse_value);
  nb::implicitly_convertible<double, Element>();
  nb::class_<Map>(module, "Map")
      .def(nb::init<>())
      .def("__call__", &Map::call)
      .def("counters", &Map::counters, nb::rv_policy::copy);
  nb::module_ ops = module.def_submodule("ops");
  for (const auto add : operations) add(ops);
}

}  // namespace fuse::python
