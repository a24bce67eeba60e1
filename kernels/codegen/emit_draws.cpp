// How bodies draw random bits; see cpu_draws.h and gpu_draws.h.
#include "fusebook/codegen/emit_memory.h"
#include "fusebook/codegen/template_text.h"

namespace fuse {
namespace {

std::string key_of(const BodyValues& values, const BodyNode& draw) {
  const std::int32_t key = draw.in[1];
  if (!values.is_key(key)) return values.operand(key, draw);
  const std::int32_t slot = values.node(key).index;
  const DType dtype = values.body().slots[std::size_t(slot)].dtype;
  return fill(
      "load_scalar<@type@>(p[@slot@])",
      {{"type", memory_type_of(dtype)}, {"slot", std::to_string(slot)}});
}

std::string begin_draws(const BodyValues& values, Target target) {
  const bool gpu = target == Target::gpu;
  std::string begins;
  values.for_draws([&](const std::string& slot, const BodyNode& draw) {
    begins += fill("at.@slot@.begin(random_stream(@key@, @stream@)@room@);\n",
                   {{"slot", slot},
                    {"key", key_of(values, draw)},
                    {"stream", values.operand(draw.in[2], draw)},
                    {"room", gpu ? "" : ", drawn"}});
  });
  return fill(R"(template <class At>
static FUSE_FN void begin_draws(At& at, const PerTensor& t, void* const* p@room@) {
  @begins@
}
)",
              {{"room", gpu ? "" : ", DrawnBits& drawn"}, {"begins", begins}});
}

// What a loop in lanes draws for a group of elements.
std::string draw_group(const BodyValues& values) {
  std::string draws;
  values.for_draws([&](const std::string& slot, const BodyNode&) {
    draws += fill("at.@slot@.draw(i, n);\n", {{"slot", slot}});
  });
  return fill(R"(#if defined(FUSE_LANES)
template <class At>
static FUSE_FN void draw(const At& at, i64 i, i64 n) {
  @draws@
}
#endif
)",
              {{"draws", draws}});
}

}  // namespace

// On a GPU, blocks have a loop of their own.
std::string draw_access(const BodyValues& values, Target target) {
  const bool gpu = target == Target::gpu;
  const bool own_loop = !gpu || !values.body().has_blocks();
  return fill("static constexpr bool draws = @draws@;\n",
              {{"draws", own_loop ? "true" : "false"}}) +
         begin_draws(values, target) +
         (values.in_lanes() ? draw_group(values) : "");
}

}  // namespace fuse
