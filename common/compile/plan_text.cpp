#include "fusebook/compile/plan_text.h"

#include <algorithm>

#include "fusebook/codegen/emit_kernel.h"
#include "fusebook/codegen/print_plan.h"

namespace fuse {

std::string code_text(const Plan& plan, Target target) {
  return annotated_bodies(plan, target, [](const std::source_location& place) {
    return to_string(log_place(place));
  });
}

std::vector<LogPlace> code_places(const Plan& plan) {
  std::vector<LogPlace> places;
  for (const Body& body : plan.bodies) {
    for (const BodyNode& node : body.nodes) {
      if (node.arity == 0 || node.place.line() == 0) continue;
      const LogPlace place = log_place(node.place);
      if (std::find(places.begin(), places.end(), place) == places.end()) {
        places.push_back(place);
      }
    }
  }
  return places;
}

std::string graph_text(const std::string& function, const Program& program,
                       const Plan& plan) {
  return function + ", as recorded\n" + listing(program) + function +
         ", as planned\n" + listing(plan) +
         graphviz(program, function + " recorded") +
         graphviz(plan, function + " planned");
}

}  // namespace fuse
