#include "fusebook/codegen/print_plan.h"

#include <doctest/doctest.h>

#include <source_location>
#include <string>

#include "support/testing.h"

using namespace fuse;
using namespace testing;

namespace {

const auto here = std::source_location::current();

// b = a * lr, over three elements.
struct Scaled {
  Scaled() {
    const ValueId number = program.constant(0.5, {.name = "lr", .group = 0});
    const auto from = program.slot(a.view(), {DType::float32, Rate::element});
    const auto to = program.slot(b.view(), {DType::float32, Rate::element});
    const ValueId in[] = {program.load(from, here), number};
    program.store(to, program.apply(OpCode::mul, in, here), here);
  }
  Plan plan() const {
    return make_plan(program, [](const Origin&) { return true; });
  }

  MemoryList<float> a = MemoryList<float>::zeros("a", {3});
  MemoryList<float> b = MemoryList<float>::zeros("b", {3});
  Program program;
};

}  // namespace

TEST_CASE("the listing of a program") {
  CHECK(listing(Scaled().program) ==
        "%0 = constant 0.5 param_groups[0][\"lr\"]  : uniform float64\n"
        "%1 = load slot0 a  : element float32\n"
        "%2 = mul %1 %0  : element float32\n"
        "store %2 -> slot1\n");
}

TEST_CASE("the listing of a plan has the names of the code and places") {
  const std::string text = listing(Scaled().plan());
  CHECK(contains(text, "body 0, for 1 group of lists\n"));
  CHECK(contains(text, "  a = load a  : element float32\n"));
  CHECK(contains(text, ":" + std::to_string(here.line()) + "\n"));
  CHECK(contains(text, "  store "));
  CHECK(contains(text, " -> b\n"));
}

TEST_CASE("the summary of a plan is that of its bodies") {
  const std::string text = summary(Scaled().plan());
  CHECK(text ==
        "once per launch:   nothing\n"
        "once per tensor:   nothing\n"
        "once per element:  mul\n"
        "loads:             a\n"
        "stores:            b\n"
        "bytes per element: 8\n");
  CHECK(summary(Scaled().plan().bodies[0]) == text);
}

TEST_CASE("graphs have a node for each value and an edge for each operand") {
  const std::string recorded = graphviz(Scaled().program, "a \"name\"");
  CHECK(recorded ==
        "digraph \"a \\\"name\\\"\" {\n"
        "  v0 [label=\"0x1p-1 /* 0.5 */\", shape=ellipse, style=dashed];\n"
        "  v1 [label=\"a\", shape=ellipse];\n"
        "  v2 [label=\"mul\", shape=box];\n"
        "  v1 -> v2;\n"
        "  v0 -> v2;\n"
        "  vstore0 [label=\"store b\", shape=box, style=bold];\n"
        "  v2 -> vstore0;\n"
        "}\n");
  const std::string planned = graphviz(Scaled().plan(), "plan");
  CHECK(contains(planned, "digraph \"plan\" {\nsubgraph cluster_0 {\n"));
  CHECK(contains(planned, "label=\"store b\""));
}
