#include <algorithm>

#include "fusebook/codegen/emit_memory.h"
#include "fusebook/codegen/template_text.h"
#include "fusebook/support/join.h"

namespace fuse {
namespace {

// A thread has 64 registers of four bytes. The compiler needs the others to
// compute with.
constexpr std::size_t registers_to_keep = 32;

// What an element takes of the registers while it is computed. One of 16 bits
// that will be stored is computed as a float.
std::size_t bytes_kept(const BodySlot& slot) {
  const std::size_t size = size_of(slot.dtype);
  return slot.stored ? std::max(size, sizeof(float)) : size;
}

// How many registers hold a pack of each list while it is computed: with their
// addresses and what the elements read of the tensor.
std::size_t registers_kept(const BodyValues& values, std::size_t pack) {
  std::size_t bytes = 0;
  values.for_element_slots([&](std::size_t s) {
    const BodySlot& slot = values.body().slots[s];
    bytes += slot.draws() ? 2 * pack : pack * bytes_kept(slot);
    bytes += sizeof(void*);
  });
  for (const BodyValues::Need& need : values.element_needs()) {
    bytes += size_of(need.second);
  }
  return bytes / 4;
}

// As many neighbours as fill 16 bytes of the smallest type, or fewer where the
// registers of a thread would not hold them.
std::size_t pack_size(const BodyValues& values) {
  std::size_t smallest = 8;
  values.for_element_slots([&](std::size_t s) {
    if (values.body().slots[s].draws()) return;
    smallest = std::min(smallest, size_of(values.body().slots[s].dtype));
  });
  std::size_t pack = 16 / smallest;
  while (pack > 2 && registers_kept(values, pack) > registers_to_keep) {
    pack /= 2;
  }
  return pack;
}

std::string pack_type(const BodyValues& values) {
  std::string fields;
  values.for_element_slots([&](std::size_t s) {
    const DType dtype = values.body().slots[s].dtype;
    if (values.body().slots[s].draws()) {
      fields +=
          fill("DrawnPack<pack> @slot@;\n", {{"slot", values.slot_name(s)}});
      return;
    }
    fields += fill("Pack<@type@, pack> @slot@;\n",
                   {{"type", is_reduced(dtype) ? "bits16" : type_of(dtype)},
                    {"slot", values.slot_name(s)}});
  });
  return fill(
      R"(
static constexpr int pack = @size@;
struct Packs {
  @fields@
};
)",
      {{"size", std::to_string(pack_size(values))}, {"fields", fields}});
}

// Element k of a pack.
std::string from_pack(DType dtype, const std::string& slot) {
  return fill(
      is_reduced(dtype) ? "half_of(from.@slot@, k)" : "from.@slot@.value[k]",
      {{"slot", slot}});
}

std::string to_pack(DType dtype, const std::string& slot,
                    const std::string& value) {
  return fill(is_reduced(dtype) ? "put_half(to.@slot@, k, @value@);\n"
                                : "to.@slot@.value[k] = @value@;\n",
              {{"slot", slot}, {"value", value}});
}

std::string alignment(const BodyValues& values) {
  std::string all;
  values.for_element_slots([&](std::size_t s) {
    const char* const how = values.body().slots[s].draws()
                                ? "at.@slot@.template aligned<pack>(i)"
                                : "is_aligned(at.@slot@ + i)";
    add_item(all, fill(how, {{"slot", values.slot_name(s)}}), " &&\n         ");
  });
  return fill(R"(static FUSE_FN bool aligned(const Pointers& at, i64 i) {
  return @all@;
}
)",
              {{"all", all.empty() ? "true" : all}});
}

}  // namespace

namespace {

// Blocks are read an element at a time, so there are no packs: `pack` is how far
// apart threads ask for memory.
std::string want_blocks(const BodyValues& values) {
  std::string wants;
  values.for_element_slots([&](std::size_t s) {
    const BodySlot& list = values.body().slots[s];
    if (!list.loaded || list.draws()) return;
    wants += fill("device::want(at.@slot@@address@ + i);\n",
                  {{"slot", values.slot_name(s)},
                   {"address", values.in_blocks(s) ? ".address" : ""}});
  });
  return fill(R"(
static constexpr int pack = 4;
static FUSE_FN void want(const Pointers& at, i64 i) {
  @wants@
}
)",
              {{"wants", wants}});
}

}  // namespace

std::string pack_access(const BodyValues& values) {
  if (values.body().has_blocks()) return want_blocks(values);
  std::string wants;
  std::string loads;
  std::string takes;
  values.for_draws([&](const std::string& slot, const BodyNode&) {
    loads += fill("x.@slot@ = at.@slot@.template pack<pack>(i);\n",
                  {{"slot", slot}});
    takes += fill("x.@slot@ = from.@slot@.value(k);\n", {{"slot", slot}});
  });
  values.for_element_slots([&](std::size_t s) {
    const BodySlot& list = values.body().slots[s];
    if (!list.loaded || list.draws()) return;
    const std::string& slot = values.slot_name(s);
    wants += fill("device::want(at.@slot@ + i);\n", {{"slot", slot}});
    loads +=
        fill("x.@slot@ = load_pack<pack>(at.@slot@ + i);\n", {{"slot", slot}});
    takes +=
        fill("x.@slot@ = @value@;\n",
             {{"slot", slot},
              {"value", from_memory(list.dtype, from_pack(list.dtype, slot))}});
  });
  std::string stores;
  std::string puts;
  values.for_moved_slots(&BodySlot::stored, [&](const std::string& slot,
                                                DType dtype) {
    stores += fill("store_pack(at.@slot@ + i, x.@slot@);\n", {{"slot", slot}});
    puts += to_pack(dtype, slot, to_memory(dtype, "x." + slot));
  });
  return pack_type(values) + alignment(values) +
         fill(R"(static FUSE_FN void want(const Pointers& at, i64 i) {
  @wants@
}
static FUSE_FN void load(Packs& x, const Pointers& at, i64 i) {
  @loads@
}
static FUSE_FN void store(const Packs& x, const Pointers& at, i64 i) {
  @stores@
}
static FUSE_FN void take(Element& x, const Packs& from, int k) {
  @takes@
}
static FUSE_FN void put(Packs& to, const Element& x, int k) {
  @puts@
}
)",
              {{"wants", wants},
               {"loads", loads},
               {"stores", stores},
               {"takes", takes},
               {"puts", puts}});
}

}  // namespace fuse
