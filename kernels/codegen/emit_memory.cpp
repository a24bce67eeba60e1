#include "fusebook/codegen/emit_memory.h"

#include "fusebook/codegen/template_text.h"
#include "fusebook/support/join.h"

namespace fuse {
namespace {

std::string elements(const BodyValues& values) {
  std::string fields;
  values.for_element_slots([&](std::size_t s) {
    fields += fill("@type@ @slot@;\n",
                   {{"type", values.element_type(values.body().slots[s].dtype)},
                    {"slot", values.slot_name(s)}});
  });
  values.for_reductions([&](const std::string& name, const BodyNode&) {
    fields += fill("double @name@;\n", {{"name", name}});
  });
  if (!values.in_lanes()) {
    return fill(R"(struct Element {
  @fields@
};
)",
                {{"fields", fields}});
  }
  return fill(R"(template <class Float>
struct Elements {
  @fields@
};
using Element = Elements<float>;
)",
              {{"fields", fields}});
}

std::string pointers(const BodyValues& values) {
  std::string fields;
  std::string initialisers;
  values.for_element_slots([&](std::size_t s) {
    const std::string type = place_type(values.body().slots[s]);
    const std::string address = "p[" + std::to_string(s) + "]";
    const std::string& slot = values.slot_name(s);
    fields += fill("@type@ @slot@;\n", {{"type", type}, {"slot", slot}});
    initialisers += initialisers.empty() ? "\n      : " : ",\n        ";
    initialisers +=
        fill("@slot@(@address@)",
             {{"slot", slot},
              {"address", values.is_in_memory(s)
                              ? "static_cast<" + type + ">(" + address + ")"
                              : address}});
  });
  return fill(R"(struct Pointers {
  @fields@
  FUSE_FN explicit Pointers(void* const* p)@initialisers@ {}
};
)",
              {{"fields", fields}, {"initialisers", initialisers}});
}

// The elements of one row, each `stride` apart from the next.
std::string lines(const BodyValues& values) {
  std::string fields;
  std::string initialisers;
  std::string dense;
  values.for_element_slots([&](std::size_t s) {
    const std::string& slot = values.slot_name(s);
    const BodySlot& list = values.body().slots[s];
    fields += fill(
        "@type@ @slot@;\n",
        {{"type", list.draws() ? place_type(list)
                               : fill("Line<@type@>",
                                      {{"type", memory_type_of(list.dtype)}})},
         {"slot", slot}});
    add_item(initialisers,
             fill("@slot@(p[@index@], strides[@index@])",
                  {{"slot", slot}, {"index", std::to_string(s)}}),
             ",\n        ");
    add_item(dense, slot + ".stride == 1", " &&\n           ");
  });
  return fill(
      R"(struct Lines {
  @fields@
  FUSE_FN Lines(void* const* p, const i64* strides)
      : @initialisers@ {}
  FUSE_FN bool dense() const {
    return @dense@;
  }
};
)",
      {{"fields", fields}, {"initialisers", initialisers}, {"dense", dense}});
}

}  // namespace

std::string place_type(const BodySlot& slot) {
  if (slot.draws()) return "Draws";
  if (!slot.blocks) {
    return fill("Unaligned<@type@>*", {{"type", memory_type_of(slot.dtype)}});
  }
  return "Blocks<" + codes_of(slot) + ">";
}

std::string codes_of(const BodySlot& slot) {
  std::string codes = has_sign(*slot.blocks) ? "SignedCodes" : "UnsignedCodes";
  const i64 size = block_size_of(*slot.blocks);
  if (size == block_size) return codes;
  return "InBlocksOf<" + codes + ", " + std::to_string(size) + ">";
}

std::string element_types(const BodyValues& values) {
  return elements(values) + pointers(values) +
         (values.body().strided() ? lines(values) : "");
}

std::string element_wants(const BodyValues& values) {
  std::string wants;
  values.for_element_slots([&](std::size_t s) {
    const BodySlot& list = values.body().slots[s];
    if (list.draws()) return;
    wants += fill(list.blocks ? "device::want(place_of(at.@slot@, i));\n"
                              : "device::want(at.@slot@ + i);\n",
                  {{"slot", values.slot_name(s)}});
  });
  return fill(R"(
// Asks memory for elements that are needed soon.
static FUSE_FN void want(const Pointers& at, i64 i) {
  @wants@
}
)",
              {{"wants", wants}});
}

std::string element_access(const BodyValues& values) {
  const bool several = values.body().strided() || values.body().has_blocks();
  std::string loads;
  values.for_moved_slots(
      &BodySlot::loaded, [&](const std::string& slot, DType dtype) {
        loads += fill("x.@slot@ = @value@;\n",
                      {{"slot", slot},
                       {"value", from_memory(dtype, "at." + slot + "[i]")}});
      });
  std::string stores;
  values.for_element_slots([&](std::size_t s) {
    const BodySlot& list = values.body().slots[s];
    if (!list.stored) return;
    const std::string& slot = values.slot_name(s);
    stores += fill("at.@slot@@next@[i] = @value@;\n",
                   {{"slot", slot},
                    {"next", list.blocks ? ".next" : ""},
                    {"value", to_memory(list.dtype, "x." + slot)}});
  });
  return fill(R"(
@template@
static FUSE_FN void load(Element& x, const @At@& at, i64 i) {
  @loads@
}
@template@
static FUSE_FN void store(const Element& x, const @At@& at, i64 i) {
  @stores@
}
)",
              {{"template", several ? "template <class At>" : ""},
               {"At", several ? "At" : "Pointers"},
               {"loads", loads},
               {"stores", stores}});
}

}  // namespace fuse
