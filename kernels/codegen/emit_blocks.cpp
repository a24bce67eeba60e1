#include <algorithm>

#include "fusebook/codegen/emit_memory.h"
#include "fusebook/codegen/template_text.h"
#include "fusebook/prelude/gpu_layout.h"
#include "fusebook/support/join.h"

namespace fuse {
namespace {

// How many elements are held at once: whole blocks, and on a CPU no fewer than it
// computes as a group.
i64 held_size(const Body& body, Target target) {
  const i64 least = target == Target::gpu ? gpu_held_size : 128;
  return std::max<i64>(least, body.largest_block());
}

// Says so, unless it is what the prelude does.
std::string own_size(const Body& body, Target target) {
  const i64 size = held_size(body, target);
  const bool gpu = target == Target::gpu;
  if (size == (gpu ? gpu_held_size : block_size)) return "";
  return fill("static constexpr @type@ = @size@;\n",
              {{"type", gpu ? "int held_size" : "i64 block_size"},
               {"size", std::to_string(size)}});
}

std::string holder(const BodySlot& list, const Body& body, Target target) {
  const i64 size = held_size(body, target);
  const std::string codes = codes_of(list);
  const std::string several = codes + ", " + std::to_string(size);
  if (target == Target::gpu) {
    return "HeldBlock<" + (size == gpu_held_size ? codes : several) + ">";
  }
  return block_size_of(*list.blocks) == size ? "HeldBlock<" + codes + ">"
                                             : "HeldBlocks<" + several + ">";
}

// A block of each list: elements that lie there as they are, and what holds the
// others.
std::string held(const BodyValues& values, Target target) {
  const char* const room = target == Target::gpu ? "held_size" : "block_size";
  std::string fields;
  std::string initialisers;
  int number = 0;
  values.for_element_slots([&](std::size_t s) {
    const BodySlot& list = values.body().slots[s];
    const std::string& slot = values.slot_name(s);
    fields += fill("@type@ @slot@;\n",
                   {{"type", list.blocks ? holder(list, values.body(), target)
                                         : place_type(list)},
                    {"slot", slot}});
    const std::string room_at =
        ", first, room + " + std::to_string(number) + " * " + room;
    add_item(
        initialisers,
        fill("@slot@(at.@slot@@first@)",
             {{"slot", slot}, {"first", list.blocks ? room_at : " + first"}}),
        ",\n        ");
    number += list.blocks ? 1 : 0;
  });
  return fill(R"(
static constexpr int coded = @count@;
@own_size@
struct Held {
  @fields@
  FUSE_FN Held(const Pointers& at, i64 first, float* room)
      : @initialisers@ {}
};
)",
              {{"count", std::to_string(number)},
               {"own_size", own_size(values.body(), target)},
               {"fields", fields},
               {"initialisers", initialisers}});
}

// `does` for each list in blocks that is stored.
std::string for_each(const BodyValues& values, const char* does) {
  std::string text;
  values.for_blocks([&](const std::string& slot, const BodySlot& list) {
    if (list.stored) text += fill(does, {{"slot", slot}});
  });
  return text;
}

// What a CPU does to the held elements of all such lists.
std::string cpu_block_steps(const BodyValues& values) {
  return fill(
      R"(static FUSE_FN bool measure(Held& held) {
  bool finite = true;
  @measures@
  return finite;
}
static FUSE_FN void encode(const Held& held, i64 i, i64 n) {
  @encodes@
}
using Lanes = BlockByBlock;
)",
      {{"measures",
        for_each(values, values.in_lanes()
                             ? "finite &= held.@slot@.measure_lanes();\n"
                             : "finite &= held.@slot@.measure();\n")},
       {"encodes", for_each(values, "held.@slot@.encode(i, n);\n")}});
}

}  // namespace

std::string block_access(const BodyValues& values, Target target) {
  const bool gpu = target == Target::gpu;
  return held(values, target) +
         fill(R"(static FUSE_FN void encode(const Held& held, @count@ n) {
  @encodes@
}
)",
              {{"count", gpu ? "int" : "i64"},
               {"encodes", for_each(values, "held.@slot@.encode(n);\n")}}) +
         (gpu ? "" : cpu_block_steps(values));
}

}  // namespace fuse
