#include "fusebook/codegen/emit_body.h"

#include <algorithm>
#include <set>
#include <sstream>
#include <string_view>
#include <utility>
#include <vector>

#include "fusebook/codegen/names.h"

namespace fuse {
namespace {

// What registers hold elements of a type in.
const char* type_of(DType dtype) {
  return dtype == DType::float64 ? "double" : "float";
}

// What half.h calls it in memory.
const char* memory_type_of(DType dtype) {
  if (!is_reduced(dtype)) return type_of(dtype);
  return dtype == DType::float16 ? "f16" : "bf16";
}

// `round_bfloat16(text)` and the like.
std::string converted(const char* how, DType dtype, const std::string& text) {
  return std::string(how) + name_of(dtype) + "(" + text + ")";
}

// What is in memory as a register has it, and the other way round.
std::string from_memory(DType dtype, const std::string& text) {
  return is_reduced(dtype) ? converted("from_", dtype, text) : text;
}
std::string to_memory(DType dtype, const std::string& text) {
  return is_reduced(dtype) ? converted("to_", dtype, text) : text;
}

// `text` rounded to a type, in the register that holds such values.
std::string rounded(DType dtype, const std::string& text) {
  return is_reduced(dtype) ? converted("round_", dtype, text) : text;
}

// True when all elements, in memory and between operations, are bfloat16.
bool has_bfloat16_alone(const Body& body) {
  const auto differs = [](const auto& item) {
    return item.rate == Rate::element && item.dtype != DType::bfloat16;
  };
  return std::none_of(body.slots.begin(), body.slots.end(), differs) &&
         std::none_of(body.nodes.begin(), body.nodes.end(), differs);
}

// Writes one body as a struct. The three stages (uniform, entry, element)
// become functions; what a later stage reads of an earlier one becomes a field.
class BodyWriter {
 public:
  BodyWriter(const Body& body, int number, Target target, PlaceText place_text,
             std::ostream& out)
      : body_(body),
        names_(name_body(body)),
        number_(number),
        target_(target),
        in_lanes_(target == Target::cpu && runs_in_lanes(body)),
        bfloat16_alone_(has_bfloat16_alone(body)),
        place_text_(place_text),
        out_(out) {
    find_needs();
  }

  void write() {
    out_ << "struct Body" << number_ << " {\n";
    write_types();
    write_uniform();
    write_inputs();
    write_entry();
    write_compute();
    write_memory();
    if (target_ == Target::gpu) write_packs();
    if (in_lanes_) write_lanes();
    write_finish();
    out_ << "};\n";
  }

 private:
  using Need = std::pair<std::int32_t, DType>;

  const BodyNode& node(std::int32_t id) const { return body_.nodes[id]; }
  const std::string& name(std::int32_t id) const { return names_.values[id]; }

  // Which values cross from a stage into a later one, and as what type.
  void find_needs() {
    for (std::int32_t id = 0; id < std::int32_t(body_.nodes.size()); ++id) {
      for (int k = 0; k < node(id).arity; ++k) need(node(id).in[k], node(id));
    }
    for (const Store& store : body_.stores) {
      const bool entry = body_.slots[store.slot].rate == Rate::entry;
      if (entry) entry_needs_.insert({store.value, DType::float64});
    }
    for (const Need& n : entry_needs_) {
      if (node(n.first).rate == Rate::uniform) uniform_needs_.insert(n.first);
    }
  }

  void need(std::int32_t value, const BodyNode& user) {
    if (node(value).op == OpCode::constant) return;
    const Rate rate = node(value).rate;
    if (user.rate == Rate::element && rate != Rate::element) {
      entry_needs_.insert({value, operand_type(node(value), user)});
    }
    if (user.rate == Rate::entry && rate == Rate::uniform) {
      uniform_needs_.insert(value);
    }
  }

  // The type an operand has for its user: that the user computes in. A cast
  // takes what there is.
  static DType operand_type(const BodyNode& from, const BodyNode& user) {
    if (user.op != OpCode::cast) return compute_type(user.dtype);
    return from.rate == Rate::element ? compute_type(from.dtype)
                                      : DType::float64;
  }

  // The field of struct PerTensor that holds a value in a type.
  std::string field(const Need& n) const {
    const auto [value, dtype] = n;
    const DType other =
        dtype == DType::float32 ? DType::float64 : DType::float32;
    const bool both = entry_needs_.contains({value, other});
    return both && dtype == DType::float32 ? names_.rounded[value]
                                           : name(value);
  }

  void write_types() {
    out_ << "  struct Uniform {\n";
    for (const std::int32_t id : uniform_needs_) {
      out_ << "    double " << name(id) << ";\n";
    }
    if (uniform_needs_.empty()) out_ << "    double none;\n";
    out_ << "  };\n  struct Inputs {\n";
    bool any = false;
    for (const std::int32_t id : inputs()) {
      out_ << "    double " << name(id) << ";\n";
      any = true;
    }
    if (!any) out_ << "    double none;\n";
    out_ << "  };\n  struct PerTensor {\n";
    for (const Need& n : entry_needs_) {
      out_ << "    " << type_of(n.second) << " " << field(n) << ";\n";
    }
    if (entry_needs_.empty()) out_ << "    double none;\n";
    out_ << "  };\n";
    write_element_types();
  }

  // Registers of the element stage: where elements also run in lanes, one or
  // many floats.
  const char* element_type(DType dtype) const {
    return in_lanes_ ? "Float" : type_of(dtype);
  }

  void write_element_types() {
    out_ << (in_lanes_ ? "  template <class Float>\n  struct Elements {\n"
                       : "  struct Element {\n");
    for_element_slots([&](std::size_t s) {
      out_ << "    " << element_type(body_.slots[s].dtype) << " "
           << names_.slots[s] << ";\n";
    });
    out_ << "  };\n"
         << (in_lanes_ ? "  using Element = Elements<float>;\n" : "")
         << "  struct Pointers {\n";
    for_element_slots([&](std::size_t s) {
      out_ << "    Unaligned<" << memory_type_of(body_.slots[s].dtype) << ">* "
           << names_.slots[s] << ";\n";
    });
    out_ << "    FUSE_FN explicit Pointers(void* const* p)";
    const char* separator = "\n        : ";
    for_element_slots([&](std::size_t s) {
      const char* type = memory_type_of(body_.slots[s].dtype);
      out_ << separator << names_.slots[s] << "(static_cast<Unaligned<" << type
           << ">*>(p[" << s << "]))";
      separator = ",\n          ";
    });
    out_ << " {}\n  };\n";
    if (body_.strided()) write_lines();
  }

  // The elements of one row, each `stride` apart from the next.
  void write_lines() {
    out_ << "  struct Lines {\n";
    std::string initialisers;
    std::string condition;
    for_element_slots([&](std::size_t s) {
      const std::string& name = names_.slots[s];
      const std::string at = "[" + std::to_string(s) + "]";
      out_ << "    Line<" << memory_type_of(body_.slots[s].dtype) << "> "
           << name << ";\n";
      initialisers += (initialisers.empty() ? "" : ",\n          ") + name +
                      "(p" + at + ", strides" + at + ")";
      condition += (condition.empty() ? "" : " &&\n             ") + name +
                   ".stride == 1";
    });
    out_ << "    FUSE_FN Lines(void* const* p, const i64* strides)\n        : "
         << initialisers
         << " {}\n    FUSE_FN bool dense() const {\n      return " << condition
         << ";\n    }\n  };\n";
  }

  template <class Visit>
  void for_element_slots(Visit visit) {
    for (std::size_t s = 0; s < body_.slots.size(); ++s) {
      if (body_.slots[s].rate == Rate::element) visit(s);
    }
  }

  // Leaves of the entry stage: per-tensor scalars in memory, and columns.
  std::vector<std::int32_t> inputs() const {
    std::vector<std::int32_t> ids;
    for (std::int32_t id = 0; id < std::int32_t(body_.nodes.size()); ++id) {
      const BodyNode& n = node(id);
      const bool leaf = n.op == OpCode::load || n.op == OpCode::argument;
      if (leaf && n.rate == Rate::entry) ids.push_back(id);
    }
    return ids;
  }

  std::string operand(std::int32_t id, const BodyNode& user) const {
    const BodyNode& n = node(id);
    const DType type = operand_type(n, user);
    if (n.op == OpCode::constant) return constant_text(n.value, type);
    if (user.rate == n.rate) return crossing(id, n.rate);
    if (user.rate == Rate::element) return "t." + field({id, type});
    return "u." + name(id);
  }

  std::string expression(const BodyNode& n) const {
    if (n.op == OpCode::cast) return cast_expression(n);
    std::string text(name_of(n.op));
    text += "<" + std::string(register_type(n)) + ">(";
    for (int k = 0; k < n.arity; ++k) {
      text += (k == 0 ? "" : ", ") + operand(n.in[k], n);
    }
    const bool quiet = in_lanes_ && bfloat16_alone_ &&
                       n.rate == Rate::element && is_arithmetic(n.op);
    if (quiet) {
      return converted("round_result_", n.dtype, text + ")");
    }
    return rounded(n.dtype, text + ")");
  }

  // Per-tensor values stay doubles, but are rounded as their storage is.
  std::string cast_expression(const BodyNode& n) const {
    const std::string value = operand(n.in[0], n);
    if (is_reduced(n.dtype)) return rounded(n.dtype, value);
    return std::string(register_type(n)) + "(" + value + ")";
  }

  const char* register_type(const BodyNode& n) const {
    return n.rate == Rate::element ? element_type(n.dtype) : type_of(n.dtype);
  }

  struct Line {
    std::string code;
    std::string note;
  };

  std::vector<Line> stage_lines(Rate stage) const {
    std::vector<Line> lines;
    for (std::int32_t id = 0; id < std::int32_t(body_.nodes.size()); ++id) {
      const BodyNode& n = node(id);
      if (n.rate != stage || n.arity == 0) continue;
      const char* type = stage == Rate::element ? register_type(n) : "double";
      lines.push_back({"    const " + std::string(type) + " " + name(id) +
                           " = " + expression(n) + ";",
                       note(n)});
    }
    return lines;
  }

  std::string note(const BodyNode& n) const {
    if (place_text_ == nullptr || n.place.line() == 0) return "";
    return std::string(name_of(n.op)) + ", " + place_text_(n.place);
  }

  void write_stage(Rate stage) {
    const std::vector<Line> lines = stage_lines(stage);
    std::size_t width = 0;
    for (const Line& line : lines) width = std::max(width, line.code.size());
    for (const Line& line : lines) {
      out_ << line.code;
      if (!line.note.empty()) {
        out_ << std::string(width - line.code.size(), ' ') << "  // "
             << line.note;
      }
      out_ << "\n";
    }
  }

  void write_uniform() {
    out_ << "\n  // Once a launch.\n"
            "  static FUSE_FN Uniform uniform(const double* args) {\n"
            "    Uniform u = {};\n";
    for (std::int32_t id = 0; id < std::int32_t(body_.nodes.size()); ++id) {
      const BodyNode& n = node(id);
      if (n.op != OpCode::argument || n.rate != Rate::uniform) continue;
      out_ << "    const double " << name(id) << " = args[" << n.index
           << "];\n";
    }
    write_stage(Rate::uniform);
    for (const std::int32_t id : uniform_needs_) {
      out_ << "    u." << name(id) << " = " << name(id) << ";\n";
    }
    out_ << "    return u;\n  }\n";
  }

  void write_inputs() {
    out_ << "\n  // What is read for each tensor.\n"
            "  static FUSE_FN Inputs inputs(void* const* p, const double* "
            "columns) {\n    Inputs in = {};\n";
    for (const std::int32_t id : inputs()) {
      const BodyNode& n = node(id);
      out_ << "    in." << name(id) << " = ";
      if (n.op == OpCode::argument) {
        out_ << "columns[" << n.index << "];\n";
      } else {
        const DType dtype = body_.slots[n.index].dtype;
        out_ << "load_scalar<" << memory_type_of(dtype) << ">(p[" << n.index
             << "]);\n";
      }
    }
    out_ << "    return in;\n  }\n";
  }

  void write_entry() {
    out_ << "\n  // Once a tensor.\n"
            "  static FUSE_FN PerTensor per_tensor(const Uniform& u, const "
            "Inputs& in) {\n    PerTensor t = {};\n";
    write_stage(Rate::entry);
    for (const Need& n : entry_needs_) {
      // What is computed once a tensor is double already.
      const std::string value = crossing(n.first, Rate::entry);
      out_ << "    t." << field(n) << " = "
           << (n.second == DType::float32 ? "float(" + value + ")" : value)
           << ";\n";
    }
    out_ << "    return t;\n  }\n";
  }

  // A value as the code of a stage names it.
  std::string crossing(std::int32_t id, Rate stage) const {
    const BodyNode& n = node(id);
    if (n.rate == Rate::uniform && stage != Rate::uniform) {
      return "u." + name(id);
    }
    const bool leaf = n.op == OpCode::load || n.op == OpCode::argument;
    return leaf && n.rate == Rate::entry ? "in." + name(id) : name(id);
  }

  void write_compute() {
    out_ << "\n  // Once an element.\n"
         << (in_lanes_ ? "  template <class Float>\n" : "")
         << "  static FUSE_FN void compute("
         << (in_lanes_ ? "Elements<Float>" : "Element")
         << "& x, const PerTensor& t) {\n";
    for (std::int32_t id = 0; id < std::int32_t(body_.nodes.size()); ++id) {
      const BodyNode& n = node(id);
      if (n.op != OpCode::load || n.rate != Rate::element) continue;
      out_ << "    const " << register_type(n) << " " << name(id) << " = x."
           << name(id) << ";\n";
    }
    write_stage(Rate::element);
    for (const Store& store : body_.stores) {
      const BodySlot& slot = body_.slots[store.slot];
      if (slot.rate != Rate::element) continue;
      BodyNode user;
      user.rate = Rate::element;
      user.dtype = slot.dtype;
      out_ << "    x." << names_.slots[store.slot] << " = "
           << operand(store.value, user) << ";\n";
    }
    out_ << "  }\n";
  }

  void write_memory() {
    const bool strided = body_.strided();
    const char* const where = strided ? "At" : "Pointers";
    const char* const any = strided ? "  template <class At>\n" : "";
    out_ << "\n"
         << any << "  static FUSE_FN void load(Element& x, const " << where
         << "& at, i64 i) {\n";
    for_element_slots([&](std::size_t s) {
      if (!body_.slots[s].loaded) return;
      out_ << "    x." << names_.slots[s] << " = "
           << from_memory(body_.slots[s].dtype, "at." + names_.slots[s] + "[i]")
           << ";\n";
    });
    out_ << "  }\n"
         << any << "  static FUSE_FN void store(const Element& x, const "
         << where << "& at, i64 i) {\n";
    for_element_slots([&](std::size_t s) {
      if (!body_.slots[s].stored) return;
      out_ << "    at." << names_.slots[s] << "[i] = "
           << to_memory(body_.slots[s].dtype, "x." + names_.slots[s]) << ";\n";
    });
    out_ << "  }\n";
  }

  // Several elements at once, through the memory and in registers.
  void write_lanes() {
    out_ << "\n#if defined(FUSE_LANES)\n  using Lanes = Floats;\n"
            "  static FUSE_FN void load(Elements<Floats>& x, const Pointers& "
            "at, i64 i, i64 n) {\n";
    for_element_slots([&](std::size_t s) {
      if (!body_.slots[s].loaded) return;
      const std::string& name = names_.slots[s];
      out_ << "    x." << name << " = Floats::load_"
           << name_of(body_.slots[s].dtype) << "(at." << name << " + i, n);\n";
    });
    out_ << "  }\n  static FUSE_FN void store(const Elements<Floats>& x, const "
            "Pointers& at, i64 i, i64 n) {\n";
    for (const Store& store : body_.stores) {
      const auto s = std::size_t(store.slot);
      if (body_.slots[s].rate != Rate::element) continue;
      const std::string& name = names_.slots[s];
      out_ << "    x." << name << ".store_" << lanes_in_memory(store) << "(at."
           << name << " + i, n);\n";
    }
    out_ << "  }\n#endif\n";
  }

  // What an operation has rounded is at hand as memory holds it.
  std::string lanes_in_memory(const Store& store) const {
    const DType dtype = body_.slots[store.slot].dtype;
    const BodyNode& value = node(store.value);
    const bool rounded = value.rate == Rate::element && value.arity > 0 &&
                         value.dtype == dtype && is_reduced(dtype);
    return rounded ? "rounded" : name_of(dtype);
  }

  // As many neighbours as fill 16 bytes of the smallest type.
  int pack_size() {
    std::size_t smallest = 8;
    for_element_slots([&](std::size_t s) {
      smallest = std::min(smallest, size_of(body_.slots[s].dtype));
    });
    return int(16 / smallest);
  }

  void write_packs() {
    const int size = pack_size();
    out_ << "\n  static constexpr int pack = " << size
         << ";\n  struct Packs {\n";
    for_element_slots([&](std::size_t s) {
      const DType dtype = body_.slots[s].dtype;
      out_ << "    Pack<" << (is_reduced(dtype) ? "bits16" : type_of(dtype))
           << ", pack> " << names_.slots[s] << ";\n";
    });
    out_ << "  };\n"
            "  static FUSE_FN bool aligned(const Pointers& at, i64 i) {\n"
            "    return ";
    const char* separator = "";
    for_element_slots([&](std::size_t s) {
      out_ << separator << "is_aligned(at." << names_.slots[s] << " + i)";
      separator = " &&\n           ";
    });
    out_ << (*separator == '\0' ? "true" : "")
         << ";\n  }\n  static FUSE_FN void want(const Pointers& at, i64 i) {\n";
    for_moved_slots(&BodySlot::loaded, [&](const std::string& name, DType) {
      out_ << "    device::want(at." << name << " + i);\n";
    });
    out_ << "  }\n  static FUSE_FN void load(Packs& x, const Pointers& at, "
            "i64 i) {\n";
    for_moved_slots(&BodySlot::loaded, [&](const std::string& name, DType) {
      out_ << "    x." << name << " = load_pack<pack>(at." << name
           << " + i);\n";
    });
    out_ << "  }\n  static FUSE_FN void store(const Packs& x, const Pointers& "
            "at, i64 i) {\n";
    for_moved_slots(&BodySlot::stored, [&](const std::string& name, DType) {
      out_ << "    store_pack(at." << name << " + i, x." << name << ");\n";
    });
    out_ << "  }\n  static FUSE_FN void take(Element& x, const Packs& from, "
            "int k) {\n";
    for_moved_slots(
        &BodySlot::loaded, [&](const std::string& name, DType dtype) {
          out_ << "    x." << name << " = "
               << from_memory(dtype, "from." + name + ".value[k]") << ";\n";
        });
    out_ << "  }\n  static FUSE_FN void put(Packs& to, const Element& x, int "
            "k) {\n";
    for_moved_slots(
        &BodySlot::stored, [&](const std::string& name, DType dtype) {
          out_ << "    to." << name
               << ".value[k] = " << to_memory(dtype, "x." + name) << ";\n";
        });
    out_ << "  }\n";
  }

  template <class Visit>
  void for_moved_slots(bool BodySlot::* moved, Visit visit) {
    for_element_slots([&](std::size_t s) {
      if (!(body_.slots[s].*moved)) return;
      visit(names_.slots[s], body_.slots[s].dtype);
    });
  }

  void write_finish() {
    if (target_ == Target::gpu) {
      const bool any = std::any_of(
          body_.stores.begin(), body_.stores.end(), [&](const Store& store) {
            return body_.slots[store.slot].rate == Rate::entry;
          });
      out_ << "\n  static constexpr bool stores_per_tensor = "
           << (any ? "true" : "false") << ";\n";
    }
    out_ << "  static FUSE_FN void finish(const PerTensor& t, void* const* p) "
            "{\n";
    for (const Store& store : body_.stores) {
      const BodySlot& slot = body_.slots[store.slot];
      if (slot.rate != Rate::entry) continue;
      out_ << "    store_scalar<" << memory_type_of(slot.dtype) << ">(p["
           << store.slot << "], t." << field({store.value, DType::float64})
           << ");\n";
    }
    out_ << "  }\n";
  }

  const Body& body_;
  BodyNames names_;
  int number_;
  Target target_;
  bool in_lanes_;
  bool bfloat16_alone_;
  PlaceText place_text_;
  std::ostream& out_;
  std::set<std::int32_t> uniform_needs_;
  std::set<Need> entry_needs_;
};

}  // namespace

bool runs_in_lanes(const Body& body) {
  bool reduced = false;
  for (const BodySlot& slot : body.slots) {
    if (slot.rate != Rate::element) continue;
    if (slot.dtype == DType::float64) return false;
    reduced = reduced || is_reduced(slot.dtype);
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
  return reduced;
}

void write_body(const Body& body, int number, Target target,
                PlaceText place_text, std::ostream& out) {
  BodyWriter(body, number, target, place_text, out).write();
}

}  // namespace fuse
