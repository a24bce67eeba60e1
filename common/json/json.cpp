#include "fusebook/json/json.h"

#include <fmt/core.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <set>
#include <vector>

#include "fusebook/support/error.h"

namespace fuse {
namespace {

using Event = ParsedJson::parse_event_t;

constexpr double kLargestWhole = 9007199254740992;  // 2^53

[[noreturn]] void fail(const std::string& what, std::size_t byte) {
  throw Error(fmt::format("{}, at byte {}", what, byte));
}

// Walks through the text and tells how far the parser has read.
class Position {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  Position(const char* at, const char** seen) : at_(at), seen_(seen) {}
  reference operator*() const { return *at_; }
  Position& operator++() {
    *seen_ = ++at_;
    return *this;
  }
  bool operator==(const Position& other) const { return at_ == other.at_; }

 private:
  const char* at_;
  const char** seen_;
};

// What the parser does not look at: members that stand twice, and depth.
class Checks {
 public:
  Checks(const char* begin, int depth)
      : seen(begin), begin_(begin), depth_(depth) {}

  void operator()(int depth, Event event, const ParsedJson& parsed) {
    const bool opens =
        event == Event::object_start || event == Event::array_start;
    if (opens && depth >= depth_) fail("too deeply nested", byte());
    if (event == Event::object_start) keys_.emplace_back();
    if (event == Event::object_end) keys_.pop_back();
    if (event == Event::key && !keys_.back().insert(parsed).second) {
      fail(parsed.dump() + " appears twice", byte());
    }
  }
  std::size_t byte() const { return std::size_t(seen - begin_); }

  const char* seen;

 private:
  const char* begin_;
  int depth_;
  std::vector<std::set<std::string>> keys_;
};

// Without the parser's own number and place, and without the text that it
// stumbled over, which may be long and of any bytes.
std::string what_is_wrong(const ParsedJson::exception& error) {
  std::string text = error.what();
  const std::size_t place = text.find(": ");
  if (place != std::string::npos) text.erase(0, place + 2);
  return text.substr(0, text.find("; last read"));
}

}  // namespace

ParsedJson parse_json(std::string_view text, int depth) {
  // The parser takes a zero for the end, and passes over a mark of byte order.
  const std::size_t zero = text.find('\0');
  if (zero != std::string_view::npos) fail("a zero byte", zero);
  if (text.starts_with("\xEF\xBB\xBF")) fail("a byte order mark", 0);
  const char* const begin = text.data();
  Checks checks(begin, depth);
  try {
    return ParsedJson::parse(
        Position(begin, &checks.seen),
        Position(begin + text.size(), &checks.seen),
        [&](int at, Event event, const ParsedJson& parsed) {
          checks(at, event, parsed);
          return true;
        });
  } catch (const ParsedJson::exception& error) {
    fail(what_is_wrong(error), checks.byte());
  }
}

Json json_number(double value) {
  const bool whole = std::trunc(value) == value &&
                     std::abs(value) <= kLargestWhole &&
                     !(value == 0 && std::signbit(value));
  return whole ? Json(std::int64_t(value)) : Json(value);
}

std::string json_string(std::string_view text) {
  return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string json_text(const Json& value) {
  return value.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace fuse
