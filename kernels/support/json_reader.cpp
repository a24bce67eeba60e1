#include "fusebook/support/json_reader.h"

#include <algorithm>
#include <charconv>
#include <system_error>

#include "fusebook/support/error.h"
#include "fusebook/support/json.h"

namespace fuse {
namespace {

/// A character beyond ASCII as UTF-8.
std::string utf8(std::uint32_t code) {
  const auto tail = [&](int shift) {
    return static_cast<char>(0x80U | (code >> shift & 0x3FU));
  };
  if (code < 0x80) return {static_cast<char>(code)};
  if (code < 0x800) return {static_cast<char>(0xC0U | code >> 6), tail(0)};
  if (code < 0x10000) {
    return {static_cast<char>(0xE0U | code >> 12), tail(6), tail(0)};
  }
  return {static_cast<char>(0xF0U | code >> 18), tail(12), tail(6), tail(0)};
}

bool is_first_half(std::uint32_t code) { return code >> 10 == 0x36; }
bool is_second_half(std::uint32_t code) { return code >> 10 == 0x37; }

}  // namespace

void JsonReader::fail(const std::string& what) const {
  throw Error(what + ", at byte " + std::to_string(at_));
}

void JsonReader::skip_blanks() {
  while (at_ < text_.size() && std::string_view(" \t\n\r").find(text_[at_]) !=
                                   std::string_view::npos) {
    ++at_;
  }
}

bool JsonReader::take(char wanted) {
  skip_blanks();
  if (at_ >= text_.size() || text_[at_] != wanted) return false;
  ++at_;
  return true;
}

void JsonReader::expect(char wanted) {
  if (!take(wanted)) fail(std::string("expected '") + wanted + "'");
}

// Whether another member or element follows; what follows a comma must.
bool JsonReader::more(bool first, char close) {
  if (take(close)) return false;
  if (!first) expect(',');
  return true;
}

std::uint32_t JsonReader::code_unit() {
  std::uint32_t code = 0;
  const char* const begin = text_.data() + at_;
  const char* const end = begin + std::min<std::size_t>(4, text_.size() - at_);
  const auto result = std::from_chars(begin, end, code, 16);
  if (result.ptr != begin + 4) fail("expected four hexadecimal digits");
  at_ += 4;
  return code;
}

// What stands after a backslash.
std::string JsonReader::escaped() {
  static constexpr std::string_view names = "\"\\/bfnrt";
  static constexpr std::string_view meanings = "\"\\/\b\f\n\r\t";
  if (at_ >= text_.size()) fail("the string does not end");
  const char name = text_[at_++];
  if (name == 'u') {
    const std::uint32_t code = code_unit();
    if (!is_first_half(code) && !is_second_half(code)) return utf8(code);
    const bool pair = is_first_half(code) && text_.substr(at_, 2) == "\\u";
    if (pair) at_ += 2;
    const std::uint32_t second = pair ? code_unit() : 0;
    if (!is_second_half(second)) fail("half a character");
    return utf8(0x10000 + ((code & 0x3FFU) << 10) + (second & 0x3FFU));
  }
  const std::size_t known = names.find(name);
  if (known == std::string_view::npos) fail("unknown escape in a string");
  return {meanings[known]};
}

std::string JsonReader::string() {
  expect('"');
  std::string result;
  while (at_ < text_.size() && text_[at_] != '"') {
    const char character = text_[at_++];
    if (static_cast<unsigned char>(character) < 0x20) {
      fail("a control character in a string");
    }
    if (character == '\\') {
      result += escaped();
    } else {
      result += character;
    }
  }
  if (at_ >= text_.size()) fail("the string does not end");
  ++at_;
  if (!is_utf8(result)) fail("a string that is no UTF-8");
  return result;
}

std::int64_t JsonReader::count() {
  skip_blanks();
  const char* const begin = text_.data() + at_;
  const char* const end = text_.data() + text_.size();
  std::int64_t value = 0;
  const auto result = std::from_chars(begin, end, value);
  const bool leading_zero = result.ptr > begin + 1 && *begin == '0';
  if (result.ec != std::errc() || *begin == '-' || leading_zero) {
    fail("expected a whole number from 0 to 2^63 - 1");
  }
  at_ += std::size_t(result.ptr - begin);
  return value;
}

void JsonReader::end() {
  skip_blanks();
  if (at_ != text_.size()) fail("more than one value");
}

}  // namespace fuse
