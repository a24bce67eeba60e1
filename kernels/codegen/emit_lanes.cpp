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
  if (values.in_blocks(s)) {
    return fill("at.@slot@.store(x.@slot@, i, n);\n", {{"slot", slot}});
  }
  const std::string type = lanes_in_memory(values, store);
  return fill(type == "int16" ? "store_@type@(x.@slot@, at.@slot@ + i, n);\n"
                              : "x.@slot@.store_@type@(at.@slot@ + i, n);\n",
              {{"slot", slot}, {"type", type}});
}

std::string load_pair(const BodyValues& values, std::size_t s) {
  return fill(
      "Floats::load_pair_bfloat16(x.@slot@, y.@slot@, at.@slot@ + i);\n",
      {{"slot", values.slot_name(s)}});
}

std::string store_pair(const BodyValues& values, const Store& store) {
  return fill("Floats::store_pair_@type@(x.@slot@, y.@slot@, at.@slot@ + i);\n",
              {{"type", lanes_in_memory(values, store)},
               {"slot", values.slot_name(std::size_t(store.slot))}});
}

// How functions store one set of lanes, or a pair.
struct Storing {
  std::string (*store)(const BodyValues& values, const Store& store);
  const char* parameters;
  const char* arguments;
};
constexpr Storing one_set = {
    store_lanes, "const Elements<Floats>& x, const @At@& at, i64 i, i64 n",
    "x, at, i, n"};
constexpr Storing in_pairs = {store_pair,
                              "const Elements<Floats>& x, const "
                              "Elements<Floats>& y, const @At@& at, i64 i",
                              "x, y, at, i"};

// Each part has its results.
std::string store_functions(const BodyValues& values, const Storing& how,
                            const char* place) {
  const auto function = [&](const char* name, const std::string& stores) {
    return fill(R"(static FUSE_FN void @name@(@parameters@) {
  @stores@
}
)",
                {{"name", name},
                 {"parameters", fill(how.parameters, {{"At", place}})},
                 {"stores", stores}});
  };
  std::string first;
  std::string second;
  for (const Store& store : values.body().stores) {
    const BodySlot& slot = values.body().slots[std::size_t(store.slot)];
    if (slot.rate != Rate::element) continue;
    (values.parts().waits(store.value) ? second : first) +=
        how.store(values, store);
  }
  if (!values.parts().two()) return function("store", first);
  const char* const both = R"(store_begun(@arguments@);
store_completed(@arguments@);
)";
  return function("store_begun", first) + function("store_completed", second) +
         function("store", fill(both, {{"arguments", how.arguments}}));
}

std::string pair_access(const BodyValues& values) {
  std::string loads;
  values.for_element_slots([&](std::size_t s) {
    if (values.body().slots[s].loaded) loads += load_pair(values, s);
  });
  return fill(R"(static constexpr bool in_pairs = true;
static FUSE_FN void load(Elements<Floats>& x, Elements<Floats>& y, const Pointers& at, i64 i) {
  @loads@
}
@store@
)",
              {{"loads", loads},
               {"store", store_functions(values, in_pairs, "Pointers")}});
}

}  // namespace

std::string lane_access(const BodyValues& values) {
  std::string loads;
  values.for_element_slots([&](std::size_t s) {
    if (values.body().slots[s].loaded) loads += load_lanes(values, s);
  });
  const bool blocks = values.body().has_blocks();
  const char* const place = blocks ? "Held" : "Pointers";
  const char* const length =
      is_long(values.body()) ? "static constexpr bool is_long = true;\n" : "";
  return fill(
      R"(
#if defined(FUSE_LANES)
using @Lanes@ = @Loop@;
@length@
static FUSE_FN void load(Elements<Floats>& x, const @At@& at, i64 i, i64 n) {
  @loads@
}
@store@
@pairs@
#endif
)",
      {{"Lanes", blocks ? "InLanes" : "Lanes"},
       {"Loop", values.body().draws() ? "DrawnLanes" : "LaneLoops"},
       {"length", length},
       {"At", place},
       {"loads", loads},
       {"store", store_functions(values, one_set, place)},
       {"pairs", runs_in_pairs(values.body()) ? pair_access(values) : ""}});
}

}  // namespace fuse
