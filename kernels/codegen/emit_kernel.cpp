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

namespace {

std::vector<std::size_t> bodies_that(const Plan& plan, bool reduce) {
  std::vector<std::size_t> bodies;
  for (std::size_t b = 0; b < plan.bodies.size(); ++b) {
    if (plan.bodies[b].reduces() == reduce) bodies.push_back(b);
  }
  return bodies;
}

}  // namespace

std::vector<std::size_t> storing_bodies(const Plan& plan) {
  return bodies_that(plan, false);
}

std::vector<std::size_t> reducing_bodies(const Plan& plan) {
  return bodies_that(plan, true);
}

std::string for_each_body(const std::vector<std::size_t>& bodies,
                          const char* declaration) {
  std::string text;
  for (const std::size_t b : bodies) {
    text += fill(declaration, {{"b", std::to_string(b)}});
  }
  return text;
}

std::string dispatch(const std::vector<std::size_t>& bodies,
                     const std::string& which, const std::string& call) {
  if (bodies.size() == 1) {
    return "body" + std::to_string(bodies.front()) + "." + call + ";\n";
  }
  std::string cases;
  for (const std::size_t b : bodies) {
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
