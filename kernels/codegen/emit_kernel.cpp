// What both targets have in common; see emit_cpu.cpp and emit_gpu.cpp.
#include "fusebook/codegen/emit_kernel.h"

#include "fusebook/codegen/emit_operations.h"
#include "fusebook/codegen/emit_target.h"
#include "fusebook/codegen/template_text.h"

namespace fuse {

std::string bodies_text(const Plan& plan, Target target, PlaceText place_text) {
  std::string text = operations_text(plan);
  if (target == Target::cpu) text += lane_operations_text(plan);
  for (std::size_t b = 0; b < plan.bodies.size(); ++b) {
    text += body_text(plan.bodies[b], int(b), target, place_text);
  }
  return text;
}

std::string for_each_body(const Plan& plan, const char* declaration) {
  std::string text;
  for (std::size_t b = 0; b < plan.bodies.size(); ++b) {
    text += fill(declaration, {{"b", std::to_string(b)}});
  }
  return text;
}

std::string dispatch(const Plan& plan, const std::string& which,
                     const std::string& call) {
  if (plan.bodies.size() == 1) return "body0." + call + ";\n";
  std::string cases;
  for (std::size_t b = 0; b < plan.bodies.size(); ++b) {
    cases += fill(R"(case @b@:
  body@b@.@call@;
  break;
)",
                  {{"b", std::to_string(b)}, {"call", call}});
  }
  return fill(R"(switch (@which@) {
  @cases@
}
)",
              {{"which", which}, {"cases", cases}});
}

std::string generate_bodies(const Plan& plan) {
  return bodies_text(plan, Target::cpu, nullptr);
}

std::string annotated_bodies(const Plan& plan, Target target,
                             PlaceText place_text) {
  return bodies_text(plan, target, place_text);
}

}  // namespace fuse
