#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fuse {

/// True for well-formed UTF-8.
bool is_utf8(std::string_view text);

/// `text` as a JSON string with its quotes. Bytes that are no UTF-8 become the
/// replacement character.
std::string json_string(std::string_view text);
/// The shortest exact form; null for NaN and infinity, which JSON cannot say.
std::string json_number(double value);

/// Members of one JSON object in the order they were added. Values are given
/// as finished JSON text.
class JsonObject {
 public:
  JsonObject& add(std::string_view key, std::string value);
  bool empty() const { return members_.empty(); }
  /// On one line: {"a": 1, "b": 2}
  std::string line() const;
  /// One member a line, `indent` spaces deep.
  std::string block(int indent) const;

 private:
  std::vector<std::string> members_;
};

/// An array with one element a line, `indent` spaces deep.
std::string json_array_block(const std::vector<std::string>& elements,
                             int indent);

}  // namespace fuse
