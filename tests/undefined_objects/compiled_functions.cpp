#include <doctest/doctest.h>

#include <source_location>

#include "fusebook/programs/compiled_program.h"
#include "fusebook/trace/revertible.h"
#include "rows.h"

using namespace fuse;

namespace undefined_objects {
namespace {

using Step = Compiled<std::function<void()>>;

Step gone() {
  return left_of(compile(std::function<void()>([] {})));
}

// A copy of what was there: there is always a value.
Revertible<int> left_value() {
  Revertible<int> value;
  value.change() = 3;
  return left_of(std::move(value));
}

// Never called: it has made nothing yet.
Function fresh() { return Function({.name = "fresh"}); }

CudaKernel gone_kernel() {
  return left_of(CudaKernel(parse_device("cuda-sim"),
                            "extern \"C\" __global__ void nothing() {}\n",
                            "nothing"));
}

CudaGraph gone_graph() {
  const TensorList list({tensor({1, 2}).to(parse_device("cuda-sim"))});
  auto step = compile([&] { foreach_add_(list, 1.0); });
  step();
  return left_of(capture_graph(step));
}

}  // namespace

Rows rows_of_compiled_functions() {
  const auto here = std::source_location::current();
  return {
      {"Compiled::operator()", [] { gone()(); }},
      {"Compiled::operator()",
       [] { compile([] { gone()(); })(); }},  // which inlines it
      {"Compiled::relaunch", [] { gone().relaunch(); }},
      {"Compiled::counters", [] { use(gone().counters()); }},
      {"Compiled::recompile_reports", [] { use(gone().recompile_reports()); }},
      {"Compiled::output_code", [] { use(gone().output_code()); }},
      {"Compiled::summary", [] { use(gone().summary()); }},
      {"Compiled::report", [] { use(gone().report()); }},
      {"Compiled::place", [] { use(gone().place()); }},
      {"Compiled::function", [] { use(gone().function()); }},
      {"Compiled::check_fused", [=] { gone().check_fused(1, here); }},
      {"assert_fused", [] { assert_fused(gone()); }, "Compiled::check_fused: "},
      answer("Revertible::change", [] { CHECK(left_value().change() == 3); }),
      answer("Revertible::operator*", [] { CHECK(*left_value() == 3); }),
      answer("Revertible::operator->",
             [] { CHECK(*left_value().operator->() == 3); }),
      {"compile", [] { compile(std::function<void()>()); }},
      {"compile", [] { compile(static_cast<void (*)()>(nullptr)); }},
      {"capture_graph",
       [] {
         Step step = gone();
         use(capture_graph(step));
       },
       "Compiled::function: "},
      {"capture_graph", [] { GraphCapture capture(nullptr); }},

      answer("Function::begin", [] { fresh().begin(); }),
      answer("Function::execute", [] { fresh().execute(Program()); }),
      {"Function::relaunch", [] { fresh().relaunch(); },
       "function fresh was never called"},
      answer("Function::graph_break", [] { fresh().graph_break("a test"); }),
      answer("Function::count_outside",
             [] {
               auto counted = Function({.name = "fresh"});
               counted.count_outside("sums", 2, 8);
               CHECK(counted.counters().launches == 2);
             }),
      {"Function::device", [] { use(fresh().device()); }, "function fresh in "},
      {"Function::bind_captured", [] { use(fresh().bind_captured(Program())); },
       "function fresh in "},
      answer("Function::counted",
             [] { CHECK(Function::counted(CompiledProgram()) == Counters()); }),
      answer("Function::count_replay",
             [] {
               const CompiledProgram none;
               fresh().count_replay(none, {});
             }),
      answer("Function::counters",
             [] { CHECK(fresh().counters() == Counters()); }),
      answer("Function::options",
             [] { CHECK(fresh().options().name == "fresh"); }),
      answer("Function::where",
             [] { CHECK(fresh().where() == "function fresh in :0"); }),
      answer("Function::output_code",
             [] { CHECK(fresh().output_code().empty()); }),
      answer("Function::summary", [] { CHECK(fresh().summary().empty()); }),
      answer("Function::last_call", [] { CHECK(fresh().last_call().empty()); }),
      answer("Function::last_launches",
             [] { CHECK(fresh().last_launches() == 0); }),
      answer("Function::was_called", [] { CHECK(!fresh().was_called()); }),
      answer("Function::recompile_reports",
             [] { CHECK(fresh().recompile_reports().empty()); }),
      answer("Function::set_eager", [] { fresh().set_eager(); }),
      answer("Function::facts", [] { CHECK(fresh().facts() != nullptr); }),
      answer("Function::function",
             [] { CHECK(fresh().function() != nullptr); }),
      answer("Function::place", [] { CHECK(fresh().place().line() == 0); }),
      answer("Function::inlined_into",
             [] { CHECK(fresh().inlined_into().empty()); }),
      answer("Function::begin_inlined",
             [] {
               Function outer({.name = "outer"});
               const Recorder recorder(outer, true);
               fresh().begin_inlined(recorder);
             }),
      {"Function::refuse_threads", [] { fresh().refuse_threads(); },
       "function fresh in "},
      answer("fusion_report", [] { CHECK(!fusion_report(fresh()).empty()); }),
      {"check_launches", [=] { check_launches(fresh(), 1, here); },
       "assert_fused at "},

      {"CudaGraph::replay", [] { gone_graph().replay(); },
       "this CudaGraph was moved from"},
      answer("CudaGraph::replays", [] { CHECK(gone_graph().replays() == 0); }),
      {"CudaKernel::launch", [] { gone_kernel().launch({}, {}); }},
      {"CudaKernel::resident_blocks",
       [] { use(gone_kernel().resident_blocks()); }},
      {"CudaKernel::resources", [] { use(gone_kernel().resources()); }},
  };
}

}  // namespace undefined_objects
