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

EXAMPLE(process_counters) {
  const Counters before = process_counters();
  foreach_add_(TensorList{tensor({1.0})}, 1);
  print("launches: ", (process_counters() - before).launches);
}

EXAMPLE(grid_as_data) {
  Tensor x = tensor({1.0});
  x.set_grad(tensor({0.5}));
  const TensorList list = {x};
  const FusionGrid grid = trace_step({x}, [&] {
    foreach_add_(list, 1);
    foreach_mul_(list, 2);
  });
  for (std::size_t i = 0; i < grid.operations.size(); ++i) {
    print(grid.operations[i], " in launch ", grid.cells[0][i]);
  }
}

EXAMPLE(places_in_logs) {
  Tensor x = tensor({1.0});
  auto step = compile([&, calls = 0]() mutable {
    foreach_mul_(TensorList{x}, ++calls < 2 ? 1.5 : 2.5);
  });
  std::vector<LogPlace> places;
  set_log_sink([&](const LogMessage& message) { places = message.places; });
  set_logs(Log::recompiles);
  print("told: ", log_enabled(Log::recompiles));
  step();
  step();
  set_logs(Log::recompiles, false);
  set_log_sink({});
  for (const LogPlace& place : places) print("in ", place.file);
}

EXAMPLE(in_turns) {
  const TensorList list = {zeros({1000})};
  const InterleavedOptions options = {.min_run_time_s = 0.01, .min_rounds = 3};
  const Clock clock = steady_seconds;
  const auto times = interleaved(
      {[&] { foreach_add_(list, 1); }, [&] { foreach_mul_(list, 2); }}, options,
      clock);
  print("measurements: ", times.size(),
        ", rounds at least: ", times[0].times().size() >= 3);
}

EXAMPLE(limit_of_the_machine) {
  const std::vector<std::int64_t> sizes = {1000, 1000};
  const AccessPattern adam(sizes);  // reads four arrays and writes three
  print("bytes: ", adam.bytes());
  print("takes time: ", bandwidth_limit_us(sizes, 4, 3, 0.01) > 0);
}
