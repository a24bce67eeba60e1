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

std::string load_lanes(const BodyValues& values, std::size_t s) {
  const std::string& slot = values.slot_name(s);
  if (values.in_blocks(s)) {
    return fill("x.@slot@ = at.@slot@.lanes(i, n);\n", {{"slot", slot}});
  }
  if (values.body().slots[s].draws()) {
    return fill("x.@slot@ = at.@slot@.lanes(i);\n", {{"slot", slot}});
  }
  const DType dtype = values.body().slots[s].dtype;
  return fill(dtype == DType::int16
                  ? "x.@slot@ = load_@type@(at.@slot@ + i, n);\n"
                  : "x.@slot@ = Floats::load_@type@(at.@slot@ + i, n);\n",
              {{"slot", slot}, {"type", name_of(dtype)}});
}

std::string store_lanes(const BodyValues& values, const Store& store) {
  const auto s = std::size_t(store.slot);
  const std::string& slot = values.slot_name(s);
  const std::string type = lanes_in_memory(values, store);
  const char* const next = values.in_blocks(s) ? ".next" : "";
  return fill(type == "int16"
                  ? "store_@type@(x.@slot@, at.@slot@@next@ + i, n);\n"
                  : "x.@slot@.store_@type@(at.@slot@@next@ + i, n);\n",
              {{"slot", slot}, {"type", type}, {"next", next}});
}

}  // namespace

std::string lane_access(const BodyValues& values) {
  std::string loads;
  values.for_element_slots([&](std::size_t s) {
    if (values.body().slots[s].loaded) loads += load_lanes(values, s);
  });
  std::string stores;
  for (const Store& store : values.body().stores) {
    const BodySlot& slot = values.body().slots[std::size_t(store.slot)];
    if (slot.rate == Rate::element) stores += store_lanes(values, store);
  }
  const bool blocks = values.body().has_blocks();
  const char* const length =
      is_long(values.body()) ? "static constexpr bool is_long = true;\n" : "";
  return fill(R"(
#if defined(FUSE_LANES)
using @Lanes@ = @Loop@;
@length@
static FUSE_FN void load(Elements<Floats>& x, const @At@& at, i64 i, i64 n) {
  @loads@
}
static FUSE_FN void store(const Elements<Floats>& x, const @At@& at, i64 i, i64 n) {
  @stores@
}
#endif
)",
              {{"Lanes", blocks ? "InLanes" : "Lanes"},
               {"Loop", values.body().draws() ? "DrawnLanes" : "Floats"},
               {"length", length},
               {"At", blocks ? "Held" : "Pointers"},
               {"loads", loads},
               {"stores", stores}});
}

}  // namespace fuse
