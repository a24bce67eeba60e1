#include "fusebook/codegen/names.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <set>
#include <sstream>
#include <string_view>

namespace fuse {
namespace {

template <class T>
std::string shortest(T value) {
  std::array<char, 64> text{};
  const auto end = std::to_chars(text.begin(), text.end(), value).ptr;
  return {text.begin(), end};
}

template <class T>
std::string hexadecimal(T value) {
  std::array<char, 64> text{};
  const auto end = std::to_chars(text.begin(), text.end(), std::abs(value),
                                 std::chars_format::hex)
                       .ptr;
  const std::string sign = std::signbit(value) ? "-" : "";
  return sign + "0x" + std::string(text.begin(), end);
}

template <class T>
std::string literal(T value, const char* suffix) {
  if (!std::isfinite(value)) {
    return std::string(sizeof(T) == 4 ? "float" : "double") +
           (std::signbit(value) ? "(-" : "(") +
           (std::isnan(value) ? "FUSE_NAN)" : "FUSE_INFINITY)");
  }
  return hexadecimal(value) + suffix + " /* " + shortest(value) + " */";
}

// Begins like a macro: ours, or one that NVRTC defines before the first line.
bool may_be_macro(const std::string& name) {
  constexpr std::array beginnings = {"FUSE", "NV_", "CUDA", "CU_", "cuda"};
  return std::any_of(
      beginnings.begin(), beginnings.end(),
      [&](const char* beginning) { return name.starts_with(beginning); });
}

std::string identifier(const std::string& text) {
  std::string result;
  for (const char c : text) {
    const bool usual = std::isalnum(static_cast<unsigned char>(c)) != 0;
    result += usual ? c : '_';
  }
  const bool usable =
      !result.empty() &&
      std::isdigit(static_cast<unsigned char>(result[0])) == 0 &&
      result[0] != '_' && !may_be_macro(result);
  return usable ? result : "x" + result;
}

// What a list or a hyper-parameter must not be called in generated code.
constexpr std::string_view reserved =
    // The words of C++.
    "alignas alignof and and_eq asm auto bitand bitor bool break case catch "
    "char char16_t char32_t char8_t class co_await co_return co_yield compl "
    "concept const const_cast consteval constexpr constinit continue "
    "decltype default delete do double dynamic_cast else enum explicit "
    "export extern false float for friend goto if inline int long mutable "
    "namespace new noexcept not not_eq nullptr operator or or_eq private "
    "protected public register reinterpret_cast requires return short "
    "signed sizeof static static_assert static_cast struct switch template "
    "this thread_local throw true try typedef typeid typename union "
    "unsigned using virtual void volatile wchar_t while xor xor_eq "
    // Names that generated code and its prelude use themselves.
    "uniform inputs per_tensor compute load store finish Uniform Inputs "
    "PerTensor Element Pointers Unaligned math calls device fuse args columns "
    "none x y Line Lines At dense strides "
    "Float Floats Lanes LaneLoops Elements in_lanes in_pairs is_long "
    "round_result_bfloat16 "
    "begin complete begun Begun kept Kept restored store_begun store_completed "
    "t u in at i p i64 Launch Part Row Runner Calls T load_scalar "
    "store_scalar linux unix "
    "bits16 f16 bf16 Memory from_float16 from_bfloat16 to_float16 to_bfloat16 "
    "round_float16 round_bfloat16 i16 from_int16 to_int16 round_int16 whole_of "
    "load_int16 store_int16 Wholes floats_of "
    // What stands in front of bodies with lists in blocks.
    "Blocks BlockByBlock Held HeldBlock HeldBlocks HeldBody InBlocksOf InLanes "
    "SignedCodes UnsignedCodes bits8 coded block_size held_size encode "
    "first held n next room "
    // What stands in front of bodies that draw.
    "u32 u64 RandomBits RandomStream random_stream philox draw draws drawn "
    "Draws DrawnBits DrawnPack DrawnLanes begin_draws drawn_of drawn_group "
    "drawn_together run_drawing "
    // What stands in front of bodies that reduce.
    "Sum SumOfSquares Amax Reducer Reducing reduce reductions slots visit "
    // And what stands in a GPU's.
    "Packs Pack pack aligned is_aligned want load_pack store_pack take put "
    "half_of put_half from to "
    "k stores_per_tensor threadIdx blockIdx blockDim gridDim "
    // The rest of what NVRTC defines.
    "NULL NOMINMAX STD THROWBADALLOC alloca assert va_arg va_copy va_end "
    "va_start warpSize";

class Names {
 public:
  Names() {
    std::istringstream words{std::string(reserved)};
    for (std::string word; words >> word;) taken_.insert(word);
    for (const OpInfo& op : op_table()) taken_.insert(std::string(op.name));
  }

  std::string numbered(const std::string& stem) {
    for (int k = 1;; ++k) {
      const std::string name = stem + "_" + std::to_string(k);
      if (taken_.insert(name).second) return name;
    }
  }

  std::string unique(const std::string& wanted) {
    return taken_.insert(wanted).second ? wanted : numbered(wanted);
  }

 private:
  std::set<std::string> taken_;
};

std::string scalar_name(const Origin& origin) {
  if (origin.name == nullptr) return "scalar";
  std::string name = identifier(origin.name);
  if (origin.index >= 0) name += std::to_string(origin.index + 1);
  return name;
}

}  // namespace

std::string constant_text(double value, DType dtype) {
  return dtype == DType::float64 ? literal(value, "")
                                 : literal(float(value), "f");
}

BodyNames name_body(const Body& body) {
  BodyNames names;
  Names used;
  for (const BodySlot& slot : body.slots) {
    names.slots.push_back(used.unique(identifier(slot.name)));
  }
  names.values.resize(body.nodes.size());
  for (const Store& store : body.stores) {
    auto& name = names.values[store.value];
    if (body.nodes[store.value].arity == 0) continue;
    if (name.empty()) {
      name = used.unique(names.slots[store.slot] + "_next");
    }
  }
  for (std::size_t i = 0; i < body.nodes.size(); ++i) {
    const BodyNode& node = body.nodes[i];
    if (!names.values[i].empty() || node.op == OpCode::constant) continue;
    if (node.op == OpCode::load) {
      names.values[i] = names.slots[node.index];
    } else if (node.op == OpCode::argument) {
      names.values[i] = used.unique(scalar_name(node.origin));
    } else {
      names.values[i] = used.numbered(std::string(name_of(node.op)));
    }
  }
  names.rounded.resize(body.nodes.size());
  for (std::size_t i = 0; i < body.nodes.size(); ++i) {
    if (body.nodes[i].rate == Rate::element || names.values[i].empty())
      continue;
    names.rounded[i] = used.unique(names.values[i] + "_f32");
  }
  return names;
}

}  // namespace fuse
