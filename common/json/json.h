#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace fuse {

/// A JSON value to be written: members keep the order in which they were added.
using Json = nlohmann::ordered_json;
/// A JSON value that was read: members are found by binary search.
using ParsedJson = nlohmann::json;

/// Reads one JSON value. Throws Error, with the byte it was noticed at, for
/// anything else, for a member that stands twice in an object, and for brackets
/// within more than `depth` others.
ParsedJson parse_json(std::string_view text, int depth);

/// A number, without a point where it is a whole one; null for NaN and infinity,
/// which JSON cannot express.
Json json_number(double value);

/// `text` as a JSON string with its quotes. Bytes that are not UTF-8 become the
/// replacement character.
std::string json_string(std::string_view text);

/// The value as a file has it: indented by two, with a newline at the end. Bytes
/// that are not UTF-8 become the replacement character.
std::string json_text(const Json& value);

}  // namespace fuse
