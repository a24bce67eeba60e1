#include "fusebook/checkpoint/safetensors_header.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "fusebook/json/json.h"
#include "fusebook/support/error.h"

namespace fuse {
namespace {

constexpr const char* kMetadata = "__metadata__";
constexpr std::size_t kAlignment = 8;

constexpr DType kTypes[] = {DType::float32,  DType::float64, DType::float16,
                            DType::bfloat16, DType::int16,   DType::block8,
                            DType::ublock8};

// The format's name for a type; of blocks, for that of their codes.
const char* type_name(DType dtype) {
  if (in_blocks(dtype)) return has_sign(dtype) ? "I8" : "U8";
  switch (dtype) {
    case DType::float32:
      return "F32";
    case DType::float64:
      return "F64";
    case DType::float16:
      return "F16";
    case DType::int16:
      return "I16";
    default:
      return "BF16";
  }
}

Json entry_json(const TensorKind& kind, std::size_t begin) {
  return {{"dtype", type_name(kind.dtype)},
          {"shape", kind.shape},
          {"data_offsets", {begin, begin + bytes_in_file(kind)}}};
}

void check_text(const std::string& text) {
  try {
    static_cast<void>(Json(text).dump());
  } catch (const Json::type_error&) {
    throw Error("the name " + json_string(text) + " is not valid UTF-8");
  }
}

DType parse_dtype(const std::string& name) {
  for (const DType each : kTypes) {
    if (name == type_name(each)) return each;
  }
  const std::string what =
      name.starts_with('C') ? "complex numbers are not supported; " : "";
  throw Error("a tensor of type " + name + ": " + what +
              "Fusebook supports F32, F64, F16, BF16 and I16");
}

const std::string& text_in(const ParsedJson& value) {
  if (value.is_string()) return value.get_ref<const std::string&>();
  throw Error("expected a string");
}

std::vector<std::int64_t> numbers_in(const ParsedJson& list) {
  const auto is_size = [](const ParsedJson& value) {
    return value.is_number_unsigned() &&
           std::in_range<std::int64_t>(value.get<std::uint64_t>());
  };
  if (!list.is_array() || !std::all_of(list.begin(), list.end(), is_size)) {
    throw Error("expected a list of integers from 0 to 2^63 - 1");
  }
  return list;
}

SafetensorsEntry parse_entry(const ParsedJson& members) {
  if (!members.is_object()) throw Error("expected an object");
  SafetensorsEntry entry;
  for (const auto& [key, value] : members.items()) {
    if (key == "dtype") {
      entry.dtype = parse_dtype(text_in(value));
    } else if (key == "shape") {
      entry.shape = numbers_in(value);
    } else if (key == "data_offsets") {
      const auto offsets = numbers_in(value);
      if (offsets.size() != 2) throw Error("data_offsets must be two numbers");
      entry.begin = offsets[0];
      entry.end = offsets[1];
    } else {
      throw Error("unknown key of a tensor: " + json_string(key));
    }
  }
  if (members.size() != 3) {
    throw Error("a tensor needs dtype, shape and data_offsets");
  }
  return entry;
}

Metadata parse_metadata(const ParsedJson& texts) {
  if (!texts.is_object()) throw Error("expected an object");
  Metadata metadata;
  for (const auto& [name, text] : texts.items()) metadata[name] = text_in(text);
  return metadata;
}

// Adds the name of the member to errors.
template <class Parse>
auto parse_member(const std::string& name, Parse parse) {
  try {
    return parse();
  } catch (const Error& error) {
    throw Error(json_string(name) + ": " + error.what());
  }
}

}  // namespace

std::size_t bytes_in_file(const TensorKind& kind) {
  std::size_t bytes = size_of(kind.dtype);
  for (const std::int64_t size : kind.shape) bytes *= std::size_t(size);
  return bytes;
}

std::string safetensors_header(Metadata metadata, const FileOrder& order) {
  metadata[kChecksum] = kNoChecksum;
  for (const auto& [name, text] : metadata) {
    check_text(name);
    check_text(text);
  }
  Json header = {{kMetadata, metadata}};
  // Names are unique, so duplicates need not be looked up.
  auto& entries = header.get_ref<Json::object_t&>();
  std::size_t begin = 0;
  for (const auto* named : order) {
    check_text(named->first);
    if (named->first == kMetadata) {
      throw Error(std::string("a tensor must not be named ") + kMetadata);
    }
    entries.emplace_back(named->first, entry_json(named->second, begin));
    begin += bytes_in_file(named->second);
  }
  std::string text = header.dump();
  text.append((kAlignment - text.size() % kAlignment) % kAlignment, ' ');
  return text;
}

std::size_t place_of_checksum(std::string_view text,
                              const std::string& digits) {
  // Inside a string the quotation marks would be escaped.
  for (const char* const colon : {"\":\"", "\": \""}) {
    const std::string key = std::string("\"") + kChecksum + colon;
    const std::size_t at = text.find(key + digits + '"');
    if (at != std::string_view::npos) return at + key.size();
  }
  throw Error("the checksum is damaged");
}

SafetensorsHeader parse_safetensors_header(std::string_view text) {
  const ParsedJson members = parse_json(text, 3);
  if (!members.is_object()) throw Error("expected an object");
  SafetensorsHeader header;
  for (const auto& [name, value] : members.items()) {
    const ParsedJson& one = value;
    if (name == kMetadata) {
      header.metadata = parse_member(name, [&] { return parse_metadata(one); });
    } else {
      header.entries[name] =
          parse_member(name, [&] { return parse_entry(one); });
    }
  }
  return header;
}

}  // namespace fuse
