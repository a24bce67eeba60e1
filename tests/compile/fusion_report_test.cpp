#include "fusebook/compile/fusion_report.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "fusebook/codegen/emit_kernel.h"
#include "fusebook/codegen/print_plan.h"
#include "fusebook/compile/compile.h"
#include "fusebook/compile/plan_text.h"
#include "fusebook/foreach/foreach.h"
#include "fusebook/foreach/foreach_map.h"
#include "fusebook/reports/log.h"
#include "fusebook/support/error.h"
#include "support/testing.h"

using namespace fuse;
using testing::contains;
using testing::message_of;

namespace {

std::string at_line(int line) {
  return "tests/compile/fusion_report_test.cpp:" + std::to_string(line);
}

TensorList ones(std::vector<std::int64_t> sizes, const char* label) {
  std::vector<Tensor> tensors;
  for (const auto size : sizes) tensors.push_back(full({size}, 1));
  return TensorList(std::move(tensors), label);
}

int count_of(const std::string& text, const std::string& part) {
  int count = 0;
  for (std::size_t p = text.find(part); p != std::string::npos;
       p = text.find(part, p + 1)) {
    ++count;
  }
  return count;
}

// What the channel `graph` says about the first call.
template <class Step>
std::string logged_graph(Step& step) {
  std::string text;
  set_log_sink([&](const LogMessage& message) { text += message.text; });
  set_logs(Log::graph);
  step();
  set_logs(Log::graph, false);
  set_log_sink({});
  return text;
}

}  // namespace

TEST_CASE("one launch: what is in it") {
  const TensorList p = ones({2, 3}, "params");
  const TensorList g = ones({2, 3}, "grads");
  auto step = compile(
      [&] { foreach_map_([](auto x, auto y) { return x - y * 0.5; }, p, g); },
      {.name = "update"});
  CHECK(contains(message_of<Error>([&] { assert_fused(step); }),
                 "update was never called"));
  step();
  assert_fused(step);
  const std::string report = step.report();
  INFO(report);
  CHECK(contains(report, "update at "));
  CHECK(contains(report, ": 1 launch in the last call\n"));
  CHECK(contains(report, "launch 1: 2 tensors in 1 loop\n"));
  CHECK(contains(report, "    once per element:  mul, sub\n"));
  CHECK(contains(report, "    stores:            params\n"));
}

TEST_CASE("a graph break is named with the place before it") {
  const TensorList p = ones({2}, "params");
  int line = 0;
  auto broken = compile([&] {
    line = __LINE__ + 1;
    foreach_map_([](auto x) { return x + 1; }, p);
    (void)p[0].to_vector();
    foreach_map_([](auto x) { return x * 2; }, p);
  });
  broken();
  assert_fused(broken, 2);
  const std::string message = message_of<Error>([&] { assert_fused(broken); });
  INFO(message);
  CHECK(contains(message, "assert_fused at "));
  CHECK(contains(message, "expected 1 launch, but step at "));
  CHECK(contains(message, ": 2 launches in the last call\n"));
  CHECK(contains(message, "graph break: a tensor is read before it is "));
  CHECK(contains(message, at_line(line) + "\n"));
  CHECK(message.find("launch 1:") < message.find("graph break:"));
  CHECK(message.find("graph break:") < message.find("launch 2:"));
}

TEST_CASE("the report is about the last call alone") {
  const TensorList p = ones({2}, "params");
  bool look = true;
  auto step = compile([&] {
    foreach_map_([](auto x) { return x + 1; }, p);
    if (look) (void)p[0].to_vector();
    foreach_map_([](auto x) { return x * 2; }, p);
  });
  step();
  assert_fused(step, 2);
  look = false;
  step();
  assert_fused(step);
  CHECK_FALSE(contains(step.report(), "graph break"));
}

TEST_CASE("loops stand apart where shapes, lengths or operations differ") {
  const TensorList a = ones({2, 3}, "a");
  const TensorList b = ones({5}, "b");
  const TensorList c = ones({4, 4}, "c");
  const TensorList d = ones({2, 3}, "d");
  auto step = compile([&] {
    foreach_map_([](auto x) { return x + 1; }, a);
    foreach_map_([](auto x) { return x * 2; }, b);
    foreach_map_([](auto x) { return x / 3; }, c);
    foreach_map_([](auto x) { return x - 4; }, d);
  });
  step();
  assert_fused(step);
  const std::string report = step.report();
  INFO(report);
  CHECK(contains(report, "7 tensors in 4 loops"));
  CHECK(contains(report,
                 "loop 2, separate from loop 1: its lists have 1 tensor\n"));
  CHECK(contains(
      report,
      "loop 3, separate from loop 1: its lists have different shapes\n"));
  CHECK(contains(report,
                 "loop 4, separate from loop 1: different operations, none of "
                 "which joins their lists\n"));
}

TEST_CASE("code to look at names operations and places, code to compile not") {
  const TensorList m = ones({2, 3}, "means");
  const TensorList g = ones({2, 3}, "grads");
  int line = 0;
  auto step = compile([&] {
    foreach_map_(
        [&](auto x, auto y) {
          line = __LINE__ + 1;
          return lerp(x, y, 0.1);
        },
        m, g);
  });
  step();
  const std::string code = step.output_code();
  INFO(code);
  CHECK(contains(code,
                 "    const float means_next = lerp<float>(means, grads, "
                 "0x1.99999ap-4f /* 0.1 */);  // lerp, "));
  CHECK(contains(code, at_line(line) + "\n"));

  Program p;
  float x = 1;
  void* address = &x;
  const std::int64_t one = 1;
  const auto slot = p.slot({1, &address, &one, 1, "x"},
                           {fuse::DType::float32, fuse::Rate::element});
  const auto here = std::source_location::current();
  const ValueId in[] = {p.load(slot, here)};
  p.store(slot, p.apply(OpCode::neg, in, here), here);
  const Plan plan = make_plan(p, [](const Origin&) { return true; });
  CHECK_FALSE(contains(generate_bodies(plan), "fusion_report_test"));
  CHECK_FALSE(contains(generate_cpu_source(plan), "fusion_report_test"));
  CHECK(contains(code_text(plan),
                 "// neg, tests/compile/fusion_report_test.cpp:"));
  CHECK(code_places(plan).size() == 1);
}

TEST_CASE("what is copied after it was computed is no operation of its own") {
  const TensorList a = ones({2}, "a");
  const TensorList b = ones({2}, "b");
  auto step = compile([&] {
    const TensorList sum = foreach_map([](auto x) { return x + 1; }, a);
    foreach_copy_(a, sum);
    foreach_copy_(b, a);
  });
  step();
  CHECK_FALSE(contains(step.output_code(), "copy"));
  CHECK(b[0].to_vector() == std::vector<double>{2, 2});
  auto plain = compile([&] { foreach_copy_(b, a); });
  plain();
  CHECK(contains(plain.output_code(), "copy"));
}

TEST_CASE("the channel graph: before and after planning, text and Graphviz") {
  const TensorList p = ones({2}, "say \"params\"");
  int line = 0;
  auto step = compile(
      [&] {
        line = __LINE__ + 1;
        foreach_map_([](auto x) { return x + (x * 2 + 0 * x) * 1; }, p);
      },
      {.name = "twice"});
  const std::string text = logged_graph(step);
  INFO(text);
  CHECK(contains(text, "[graph] twice, as recorded\n%0 = "));
  CHECK(contains(text, "twice, as planned\nbody 0, for 1 group of lists\n"));
  CHECK(contains(text, at_line(line) + "\n"));
  CHECK(contains(text, " -> say__params_\n"));
  CHECK(contains(text, "digraph \"twice recorded\" {"));
  CHECK(contains(text, "digraph \"twice planned\" {"));
  CHECK(contains(text, "label=\"say \\\"params\\\"\""));
  CHECK(contains(text, "subgraph cluster_0 {"));
  CHECK(count_of(text, "{") == count_of(text, "}"));
}
