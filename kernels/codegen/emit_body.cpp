#include "fusebook/codegen/emit_body.h"

#include <algorithm>

#include "fusebook/codegen/body_values.h"
#include "fusebook/codegen/emit_memory.h"
#include "fusebook/codegen/emit_stages.h"
#include "fusebook/codegen/template_text.h"

namespace fuse {

bool runs_in_lanes(const Body& body) {
  if (body.reduces()) return false;  // has lanes of its own
  bool gains = body.has_blocks();
  for (const BodySlot& slot : body.slots) {
    if (slot.rate != Rate::element) continue;
    if (slot.dtype == DType::float64) return false;
    gains = gains || is_reduced(slot.dtype);
  }
  for (const BodyNode& node : body.nodes) {
    if (node.rate != Rate::element) continue;
    if (node.dtype == DType::float64) return false;
    if (node.arity == 0) continue;
    if (calls_library(node.op)) return false;  // for each element
    // Per-tensor numbers are doubles, which a cast takes as they are.
    const BodyNode& from = body.nodes[node.in[0]];
    if (node.op == OpCode::cast && from.rate != Rate::element) return false;
  }
  return gains;
}

bool runs_in_pairs(const Body& body) {
  const auto differs = [](const BodySlot& slot) {
    return slot.rate == Rate::element &&
           (slot.dtype != DType::bfloat16 || slot.blocks || slot.draws());
  };
  return runs_in_lanes(body) && !is_long(body) &&
         std::none_of(body.slots.begin(), body.slots.end(), differs);
}

bool is_long(const Body& body) {
  constexpr auto short_body = 64;
  return std::count_if(body.nodes.begin(), body.nodes.end(),
                       [](const BodyNode& node) {
                         return node.rate == Rate::element && node.arity > 0;
                       }) > short_body;
}

std::string body_text(const Body& body, int number, Target target,
                      PlaceText place_text) {
  const BodyValues values(body, target);
  const bool gpu = target == Target::gpu;
  return fill(R"(struct Body@number@ {
  @types@
  @stages@
  @access@
  @wants@
  @packs@
  @blocks@
  @draws@
  @lanes@
  @reduce@
  @finish@
};
)",
              {{"number", std::to_string(number)},
               {"types", stage_types(values) + element_types(values)},
               {"stages", stages(values, place_text)},
               {"access", element_access(values)},
               {"wants", gpu ? "" : element_wants(values)},
               {"packs", gpu ? pack_access(values) : ""},
               {"blocks", body.has_blocks() && !body.reduces()
                              ? block_access(values, target)
                              : ""},
               {"draws", body.draws() ? draw_access(values, target) : ""},
               {"lanes", values.in_lanes() ? lane_access(values) : ""},
               {"reduce", body.reduces() ? reduce(values) : ""},
               {"finish", (gpu ? finish_trait(values) : "") + finish(values)}});
}

}  // namespace fuse
