#include <doctest/doctest.h>

#include "rows.h"

using namespace fuse;

namespace undefined_objects {
namespace {

Measurement gone_measurement() { return left_of(Measurement(1, {0.5})); }
AccessPattern gone_pattern() { return left_of(AccessPattern({16})); }
TrafficLimit gone_limit() { return left_of(TrafficLimit({16}, 1, 1)); }
Printable gone_text() { return left_of(Printable(std::string("text"))); }

}  // namespace

Rows rows_of_tools() {
  const auto none = undefined;
  const auto nothing = [] {};
  const std::function<void()> empty;
  return {
      {"Measurement::mean", [] { use(gone_measurement().mean()); }},
      {"Measurement::median", [] { use(gone_measurement().median()); }},
      {"Measurement::iqr", [] { use(gone_measurement().iqr()); }},
      {"Measurement::quantile", [] { use(gone_measurement().quantile(0.5)); }},
      {"Measurement::mean_us", [] { use(gone_measurement().mean_us()); }},
      {"Measurement::median_us", [] { use(gone_measurement().median_us()); }},
      {"Measurement::iqr_us", [] { use(gone_measurement().iqr_us()); }},
      {"Measurement::number_per_run",
       [] { use(gone_measurement().number_per_run()); }},
      {"Measurement::times", [] { use(gone_measurement().times()); }},
      {"blocked_autorange", [=] { use(blocked_autorange(empty)); }},
      {"blocked_autorange",
       [=] { use(blocked_autorange(nothing, 0.1, nullptr)); }},
      {"interleaved", [=] { use(interleaved({nothing, empty})); }},
      answer("interleaved", [] { CHECK(interleaved({}).empty()); }),
      {"counters_of", [=] { use(counters_of(empty)); }},

      {"AccessPattern::AccessPattern",
       [=] { const AccessPattern made({{none()}}, 1); },
       "an access pattern over tensors needs"},
      {"AccessPattern::run", [] { gone_pattern().run(); }},
      {"AccessPattern::bytes", [] { use(gone_pattern().bytes()); }},
      {"AccessPattern::array", [] { use(gone_pattern().array(0, 0)); }},
      {"AccessPattern::array", [] { use(AccessPattern({16}).array(4, 0)); }},
      {"TrafficLimit::run", [] { gone_limit().run(); }},

      {"trace_step", [=] { use(trace_step({none()}, nothing)); }},
      {"trace_step", [=] { use(trace_step({}, empty)); }},
      {"trace_step", [=] { use(trace_step({tensor({1})}, nothing)); }},
      {"print_ladder",
       [=] { use(print_ladder({{"rung", {none()}, nothing}})); }},
      {"print_ladder", [=] { use(print_ladder({{"rung", {}, empty}})); }},

      answer("Printable::name", [] { CHECK(gone_text().name().empty()); }),
      answer("Printable::shown", [] { CHECK(gone_text().shown().empty()); }),
      answer("right", [] { CHECK(right(gone_text(), 2).shown() == "  "); }),
      answer("left", [] { CHECK(left(gone_text(), 2).shown() == "  "); }),
      answer("run_recipe",
             [] {
               const char* const arguments[] = {"recipe"};
               CHECK(run_recipe("recipe", 1, arguments, nullptr) == 1);
             }),
      answer("run_recipe",
             [] {
               const char* const arguments[] = {"recipe"};
               CHECK(run_recipe(1, arguments, nullptr) == 1);
             }),
      {"run_recipe_on_rank",
       [] {
         const char* const arguments[] = {"recipe"};
         use(run_recipe_on_rank(0, 1, arguments, nullptr));
       }},
      answer("print_line", [] { print_line({gone_text()}); }),
      answer("print_block", [] { print_block("", {gone_text()}); }),
      answer("print_error", [] { print_error(Error("text"), {gone_text()}); }),
      {"ratio", [] { use(ratio("r", gone_text(), gone_text())); },
       "named values"},
      {"ratio", [] { use(ratio("r", gone_measurement(), gone_measurement())); },
       "Measurement::median_us: "},
      {"add_exact", [] { use(add_exact("a", gone_text(), "1")); },
       "named values"},
      answer("set_log_sink", [] { set_log_sink(nullptr); }),
  };
}

}  // namespace undefined_objects
