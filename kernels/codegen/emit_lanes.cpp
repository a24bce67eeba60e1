#include "fusebook/codegen/emit_memory.h"
#include "fusebook/codegen/template_text.h"

namespace fuse {
namespace {

// What an operation has rounded is at hand as memory holds it.
std::string lanes_in_memory(const BodyValues& values, const Store& store) {
  const DType dtype = values.body().slots[store.slot].dtype;
  const BodyNode& value = values.node(store.value);
  const bool rounded = value.rate == Rate::element && value.arity > 0 &&
                       value.dtype == dtype && is_reduced(dtype);
  return rounded ? "rounded" : name_of(dtype);
}

// What is held of blocks has been decoded.
std::string lanes_at(const BodyValues& values, std::size_t slot) {
  return "at." + values.slot_name(slot) +
         (values.in_blocks(slot) ? ".next + i" : " + i");
}

}  // namespace

std::string lane_access(const BodyValues& values) {
  std::string loads;
  values.for_element_slots([&](std::size_t s) {
    const BodySlot& slot = values.body().slots[s];
    if (!slot.loaded) return;
    const bool whole = slot.dtype == DType::int16;
    loads += fill(whole ? "x.@slot@ = load_@type@(@at@, n);\n"
                        : "x.@slot@ = Floats::load_@type@(@at@, n);\n",
                  {{"slot", values.slot_name(s)},
                   {"type", name_of(slot.dtype)},
                   {"at", lanes_at(values, s)}});
  });
  std::string stores;
  for (const Store& store : values.body().stores) {
    const auto s = std::size_t(store.slot);
    if (values.body().slots[s].rate != Rate::element) continue;
    const std::string type = lanes_in_memory(values, store);
    stores += fill(type == "int16" ? "store_@type@(x.@slot@, @at@, n);\n"
                                   : "x.@slot@.store_@type@(@at@, n);\n",
                   {{"slot", values.slot_name(s)},
                    {"type", type},
                    {"at", lanes_at(values, s)}});
  }
  const bool blocks = values.body().has_blocks();
  return fill(R"(
#if defined(FUSE_LANES)
using @Lanes@ = Floats;
static FUSE_FN void load(Elements<Floats>& x, const @At@& at, i64 i, i64 n) {
  @loads@
}
static FUSE_FN void store(const Elements<Floats>& x, const @At@& at, i64 i, i64 n) {
  @stores@
}
#endif
)",
              {{"Lanes", blocks ? "InLanes" : "Lanes"},
               {"At", blocks ? "Held" : "Pointers"},
               {"loads", loads},
               {"stores", stores}});
}

}  // namespace fuse
