#include "fusebook/support/json.h"

#include <array>
#include <cmath>
#include <cstdio>

#include "fusebook/support/number_text.h"

namespace fuse {
namespace {

bool is_continuation(unsigned char byte) { return (byte & 0xC0) == 0x80; }

/// Length of the well-formed UTF-8 character at `start`, 0 if there is none.
std::size_t character_length(std::string_view text, std::size_t start) {
  const auto byte = [&](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i])
                           : static_cast<unsigned char>(0);
  };
  const unsigned char first = byte(start);
  if (first < 0x80) return 1;
  const unsigned char second = byte(start + 1);
  std::size_t length = 0;
  if (first >= 0xC2 && first <= 0xDF) length = 2;
  if (first >= 0xE0 && first <= 0xEF) length = 3;
  if (first >= 0xF0 && first <= 0xF4) length = 4;
  // Overlong forms, surrogates and what lies beyond U+10FFFF.
  if ((first == 0xE0 && second < 0xA0) || (first == 0xED && second > 0x9F) ||
      (first == 0xF0 && second < 0x90) || (first == 0xF4 && second > 0x8F)) {
    return 0;
  }
  for (std::size_t i = 1; i < length; ++i) {
    if (!is_continuation(byte(start + i))) return 0;
  }
  return length;
}

std::string escaped_ascii(char character) {
  switch (character) {
    case '"':
      return "\\\"";
    case '\\':
      return "\\\\";
    case '\n':
      return "\\n";
    case '\t':
      return "\\t";
    default:
      break;
  }
  const auto code = static_cast<unsigned char>(character);
  if (code >= 0x20 && code != 0x7F) return {character};
  std::array<char, 8> text{};
  std::snprintf(text.data(), text.size(), "\\u%04x", unsigned(code));
  return text.data();
}

std::string joined(const std::vector<std::string>& parts, char open, char close,
                   int indent) {
  if (parts.empty()) return {open, close};
  std::string text(1, open);
  for (const std::string& part : parts) {
    if (text.size() > 1) text += ',';
    text.append("\n").append(std::size_t(indent) + 2, ' ').append(part);
  }
  text.append("\n").append(std::size_t(indent), ' ');
  return text + close;
}

}  // namespace

bool is_utf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = character_length(text, i);
    if (length == 0) return false;
    i += length;
  }
  return true;
}

std::string json_string(std::string_view text) {
  std::string result = "\"";
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = character_length(text, i);
    if (length == 0) {
      result += "\xEF\xBF\xBD";
    } else if (length == 1) {
      result += escaped_ascii(text[i]);
    } else {
      result += text.substr(i, length);
    }
    i += length == 0 ? 1 : length;
  }
  return result + "\"";
}

std::string json_number(double value) {
  return std::isfinite(value) ? number_text(value) : "null";
}

JsonObject& JsonObject::add(std::string_view key, std::string value) {
  members_.push_back(json_string(key) + ": " + std::move(value));
  return *this;
}

std::string JsonObject::line() const {
  std::string text = "{";
  for (const std::string& member : members_) {
    if (text.size() > 1) text += ", ";
    text += member;
  }
  return text + "}";
}

std::string JsonObject::block(int indent) const {
  return joined(members_, '{', '}', indent);
}

std::string json_array_block(const std::vector<std::string>& elements,
                             int indent) {
  return joined(elements, '[', ']', indent);
}

}  // namespace fuse
