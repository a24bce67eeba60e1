#include "example.h"

using namespace fuse;

EXAMPLE(counters) {
  const TensorList list = {tensor({1.0, 2.0}), tensor({3.0})};
  const Counters eager = counters_of([&] {
    foreach_add_(list, 1);
    foreach_mul_(list, 2);
  });
  auto fused = compile([&] {
    foreach_add_(list, 1);
    foreach_mul_(list, 2);
  });
  const Counters compiled = counters_of(fused);
  print("eager:    ", eager.launches, " launches, ", eager.bytes_moved,
        " bytes");
  print("compiled: ", compiled.launches, " launch, ", compiled.bytes_moved,
        " bytes");
}

EXAMPLE(fusion_grid) {
  Generator gen(0);
  const auto model = linear_stack(3, 8, gen);
  model(rand({8}, gen)).sum().backward();
  Adam adam(model.parameters());
  adam.step();
  auto step = compile([&] { adam.step(); });
  step();
  const auto params = adam.parameters();
  print_block(to_string(trace_step(params, [&] { adam.step(); })));
  print_block(to_string(trace_step(params, step)));
}

EXAMPLE(graph_log) {
  const TensorList list = {tensor({1.0, 2.0})};
  std::string told;
  set_log_sink([&](const LogMessage& message) { told += message.text; });
  set_logs(Log::graph);
  compile([&] { foreach_add_(list, foreach_mul(list, 0.5)); })();
  set_logs(Log::graph, false);
  set_log_sink({});
  print_block(told.substr(0, told.find("digraph")));
}

EXAMPLE(graph_for_graphviz) {
  const TensorList list = {tensor({1.0, 2.0})};
  std::string told;
  set_log_sink([&](const LogMessage& message) { told += message.text; });
  set_logs(Log::graph);
  compile([&] { foreach_add_(list, foreach_mul(list, 0.5)); })();
  set_logs(Log::graph, false);
  set_log_sink({});
  print_block(told.substr(told.find("digraph")));
}

EXAMPLE(output_code) {
  const TensorList list = {tensor({1.0, 2.0})};
  auto step = compile([&] { foreach_add_(list, foreach_mul(list, 0.5)); });
  step();
  print_block(step.output_code());
}

EXAMPLE(recordings) {
  const TensorList list = {tensor({1.0, 2.0})};
  int calls = 0;
  auto step = compile([&] {
    ++calls;
    foreach_mul_(list, calls % 2 == 0 ? 0.5 : 2.0);
    if (calls > 3) foreach_add_(list, 1);
  });
  for (int i = 0; i < 6; ++i) step();
  print("the function ran ", calls, " times");
  print("compilations: ", step.counters().compilations,
        ", launches: ", step.counters().launches);
  for (const RecompileReport& why : step.recompile_reports()) {
    print(why.failures.empty() ? "other operations" : "a number moved");
  }
}

EXAMPLE(timing) {
  const TensorList list = {zeros({1000})};
  const Measurement time =
      blocked_autorange([&] { foreach_add_(list, 1); }, 0.01);
  print("timed: ", !time.times().empty() && time.median() > 0);
}
