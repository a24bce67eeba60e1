#include "fusebook/codegen/emit_stages.h"

#include <algorithm>

#include "fusebook/codegen/template_text.h"
#include "fusebook/ops/reductions.h"

namespace fuse {
namespace {

// A struct has at least one field.
std::string or_none(std::string fields) {
  return fields.empty() ? "double none;\n" : std::move(fields);
}

struct Line {
  std::string code;
  std::string note;
};

// Of the element stage; the others are not divided.
enum class Part : std::uint8_t { whole, first, second };

bool is_in(const BodyValues& values, std::int32_t id, Part part) {
  return part == Part::whole ||
         values.parts().waits(id) == (part == Part::second);
}

// The operations of a stage, a line each.
std::vector<Line> operation_lines(const BodyValues& values, Rate stage,
                                  Part part, PlaceText place_text) {
  std::vector<Line> lines;
  for (std::int32_t id = 0; id < values.count(); ++id) {
    const BodyNode& n = values.node(id);
    if (n.rate != stage || n.arity == 0 || is_reduction(n.op)) continue;
    if (!is_in(values, id, part)) continue;
    const bool noted = place_text != nullptr && n.place.line() != 0;
    lines.push_back(
        {fill("const @type@ @name@ = @value@;",
              {{"type",
                stage == Rate::element ? values.register_type(n) : "double"},
               {"name", values.name(id)},
               {"value", values.expression(n)}}),
         noted ? std::string(name_of(n.op)) + ", " + place_text(n.place) : ""});
  }
  return lines;
}

// Their notes stand below each other.
std::string operations(const BodyValues& values, Rate stage,
                       PlaceText place_text, Part part = Part::whole) {
  const std::vector<Line> lines =
      operation_lines(values, stage, part, place_text);
  std::size_t width = 0;
  for (const Line& line : lines) width = std::max(width, line.code.size());
  std::string text;
  for (const Line& line : lines) {
    text += line.code;
    if (!line.note.empty()) {
      text.append(width - line.code.size(), ' ').append("  // " + line.note);
    }
    text += "\n";
  }
  return text;
}

std::string uniform_stage(const BodyValues& values, PlaceText place_text) {
  std::string arguments;
  for (std::int32_t id = 0; id < values.count(); ++id) {
    const BodyNode& n = values.node(id);
    if (n.op != OpCode::argument || n.rate != Rate::uniform) continue;
    arguments +=
        fill("const double @name@ = args[@index@];\n",
             {{"name", values.name(id)}, {"index", std::to_string(n.index)}});
  }
  std::string results;
  for (const std::int32_t id : values.uniform_needs()) {
    results += fill("u.@name@ = @name@;\n", {{"name", values.name(id)}});
  }
  return fill(R"(
// Once per launch.
static FUSE_FN Uniform uniform(const double* args) {
  Uniform u = {};
  @arguments@
  @operations@
  @results@
  return u;
}
)",
              {{"arguments", arguments},
               {"operations", operations(values, Rate::uniform, place_text)},
               {"results", results}});
}

std::string input_value(const BodyValues& values, const BodyNode& n) {
  const std::string index = std::to_string(n.index);
  if (n.op == OpCode::argument) return "columns[" + index + "]";
  const DType dtype = values.body().slots[n.index].dtype;
  return fill("load_scalar<@type@>(p[@index@])",
              {{"type", memory_type_of(dtype)}, {"index", index}});
}

std::string input_stage(const BodyValues& values) {
  std::string reads;
  for (const std::int32_t id : values.inputs()) {
    reads += fill("in.@name@ = @value@;\n",
                  {{"name", values.name(id)},
                   {"value", input_value(values, values.node(id))}});
  }
  return fill(R"(
// What is read for each tensor.
static FUSE_FN Inputs inputs(void* const* p, const double* columns) {
  Inputs in = {};
  @reads@
  return in;
}
)",
              {{"reads", reads}});
}

std::string entry_stage(const BodyValues& values, PlaceText place_text) {
  std::string results;
  for (const BodyValues::Need& need : values.entry_needs()) {
    // What is computed once per tensor is double already.
    const std::string value = values.crossing(need.first, Rate::entry);
    results +=
        fill("t.@field@ = @value@;\n",
             {{"field", values.field(need)},
              {"value", need.second == DType::float32 ? "float(" + value + ")"
                                                      : value}});
  }
  return fill(R"(
// Once per tensor.
static FUSE_FN PerTensor per_tensor(const Uniform& u, const Inputs& in) {
  PerTensor t = {};
  @operations@
  @results@
  return t;
}
)",
              {{"operations", operations(values, Rate::entry, place_text)},
               {"results", results}});
}

// What is reduced is a double, in a field of its own.
std::string reduced_results(const BodyValues& values) {
  std::string results;
  values.for_reductions([&](const std::string& name, const BodyNode& n) {
    results += fill("x.@name@ = double(@value@);\n",
                    {{"name", name}, {"value", values.name(n.in[0])}});
  });
  return results;
}

std::string element_results(const BodyValues& values, Part part) {
  if (values.body().reduces()) return reduced_results(values);
  std::string results;
  for (const Store& store : values.body().stores) {
    const auto slot = std::size_t(store.slot);
    if (values.body().slots[slot].rate != Rate::element) continue;
    if (!is_in(values, store.value, part)) continue;
    BodyNode user;
    user.rate = Rate::element;
    user.dtype = values.body().slots[slot].dtype;
    results += fill("x.@slot@ = @value@;\n",
                    {{"slot", values.slot_name(slot)},
                     {"value", values.operand(store.value, user)}});
  }
  return results;
}

std::string element_loads(const BodyValues& values) {
  std::string loads;
  for (std::int32_t id = 0; id < values.count(); ++id) {
    const BodyNode& n = values.node(id);
    if (n.op != OpCode::load || n.rate != Rate::element) continue;
    loads +=
        fill("const @type@ @name@ = x.@name@;\n",
             {{"type", values.register_type(n)}, {"name", values.name(id)}});
  }
  return loads;
}

std::string element_stage(const BodyValues& values, PlaceText place_text) {
  return fill(R"(
// Once per element.
@template@
static FUSE_FN void compute(@Element@& x, const PerTensor& t) {
  @loads@
  @operations@
  @results@
}
)",
              {{"template", values.in_lanes() ? "template <class Float>" : ""},
               {"Element", values.in_lanes() ? "Elements<Float>" : "Element"},
               {"loads", element_loads(values)},
               {"operations", operations(values, Rate::element, place_text)},
               {"results", element_results(values, Part::whole)}});
}

// `does` for each value that crosses from the first part into the second.
std::string for_kept(const BodyValues& values, const char* does) {
  std::string text;
  for (const std::int32_t id : values.parts().kept()) {
    text += fill(does, {{"name", values.name(id)}});
  }
  return text;
}

std::string element_stage_in_parts(const BodyValues& values,
                                   PlaceText place_text) {
  const auto operations_of = [&](Part part) {
    return operations(values, Rate::element, place_text, part);
  };
  return fill(
      R"(
template <class Float>
struct Begun {
  @fields@
};

// Once per element: first what waits for no division or root.
template <class Float>
static FUSE_FN Begun<Float> begin(Elements<Float>& x, const PerTensor& t) {
  @loads@
  @first_operations@
  @first_results@
  Begun<Float> begun;
  @keeps@
  return begun;
}
template <class Float>
static FUSE_FN void complete(const Begun<Float>& begun, Elements<Float>& x, const PerTensor& t) {
  @reads@
  @second_operations@
  @second_results@
}
template <class Float>
static FUSE_FN void compute(Elements<Float>& x, const PerTensor& t) {
  complete(begin(x, t), x, t);
}
)",
      {{"fields", for_kept(values, "Kept<Float> @name@;\n")},
       {"loads", element_loads(values)},
       {"first_operations", operations_of(Part::first)},
       {"first_results", element_results(values, Part::first)},
       {"keeps", for_kept(values, "begun.@name@ = kept(@name@);\n")},
       {"reads",
        for_kept(values, "const Float @name@ = restored(begun.@name@);\n")},
       {"second_operations", operations_of(Part::second)},
       {"second_results", element_results(values, Part::second)}});
}

bool is_entry(const BodyValues& values, const Store& store) {
  if (is_reduction(values.node(store.value).op)) return false;
  return values.body().slots[store.slot].rate == Rate::entry;
}

}  // namespace

std::string stage_types(const BodyValues& values) {
  std::string uniform;
  for (const std::int32_t id : values.uniform_needs()) {
    uniform += fill("double @name@;\n", {{"name", values.name(id)}});
  }
  std::string inputs;
  for (const std::int32_t id : values.inputs()) {
    inputs += fill("double @name@;\n", {{"name", values.name(id)}});
  }
  std::string entry;
  for (const BodyValues::Need& need : values.entry_needs()) {
    entry += fill("@type@ @field@;\n", {{"type", type_of(need.second)},
                                        {"field", values.field(need)}});
  }
  return fill(R"(struct Uniform {
  @uniform@
};
struct Inputs {
  @inputs@
};
struct PerTensor {
  @entry@
};
)",
              {{"uniform", or_none(uniform)},
               {"inputs", or_none(inputs)},
               {"entry", or_none(entry)}});
}

std::string stages(const BodyValues& values, PlaceText place_text) {
  return uniform_stage(values, place_text) + input_stage(values) +
         entry_stage(values, place_text) +
         (values.parts().two() ? element_stage_in_parts(values, place_text)
                               : element_stage(values, place_text));
}

std::string reduce(const BodyValues& values) {
  std::string visits;
  for (std::size_t k = 0; k < values.body().stores.size(); ++k) {
    const std::int32_t id = values.body().stores[k].value;
    visits += fill("visit(@k@, @type@(), x.@name@);\n",
                   {{"k", std::to_string(k)},
                    {"type", type_of_reduction(values.node(id).op)},
                    {"name", values.name(id)}});
  }
  return fill(R"(
static constexpr int reductions = @count@;
static constexpr int slots = @slots@;
template <class Visit>
static FUSE_FN void reduce(const Element& x, Visit visit) {
  @visits@
}
)",
              {{"count", std::to_string(values.body().stores.size())},
               {"slots", std::to_string(values.body().slots.size())},
               {"visits", visits}});
}

std::string finish(const BodyValues& values) {
  std::string stores;
  for (const Store& store : values.body().stores) {
    if (!is_entry(values, store)) continue;
    const DType dtype = values.body().slots[store.slot].dtype;
    stores += fill("store_scalar<@type@>(p[@slot@], t.@field@);\n",
                   {{"type", memory_type_of(dtype)},
                    {"slot", std::to_string(store.slot)},
                    {"field", values.field({store.value, DType::float64})}});
  }
  return fill(
      R"(static FUSE_FN void finish(const PerTensor& t, void* const* p) {
  @stores@
}
)",
      {{"stores", stores}});
}

std::string finish_trait(const BodyValues& values) {
  const auto& stores = values.body().stores;
  const bool any =
      std::any_of(stores.begin(), stores.end(),
                  [&](const Store& store) { return is_entry(values, store); });
  return fill("\nstatic constexpr bool stores_per_tensor = @any@;\n",
              {{"any", any ? "true" : "false"}});
}

}  // namespace fuse
