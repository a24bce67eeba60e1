#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>

namespace fuse {

/// Reads JSON whose form is known, value by value: objects, arrays, strings and
/// whole numbers. Anything else than what is asked for is an Error that says
/// at which byte. Nothing is nested deeper than the caller goes.
class JsonReader {
 public:
  explicit JsonReader(std::string_view text) : text_(text) {}

  /// Calls `member(key)`, which must read the value, for every member. Throws
  /// Error for a key that stands twice.
  template <class F>
  void object(F member) {
    std::set<std::string> keys;
    expect('{');
    while (more(keys.empty(), '}')) {
      const std::string key = string();
      if (!keys.insert(key).second) fail("\"" + key + "\" stands here twice");
      expect(':');
      member(key);
    }
  }
  /// Calls `element()`, which must read one, for every element.
  template <class F>
  void array(F element) {
    expect('[');
    for (bool first = true; more(first, ']'); first = false) element();
  }
  /// A string of well-formed UTF-8.
  std::string string();
  /// A whole number from 0 to 2^63 - 1.
  std::int64_t count();
  /// Throws Error unless only blanks are left.
  void end();

  /// How many bytes were read.
  std::size_t position() const { return at_; }
  [[noreturn]] void fail(const std::string& what) const;

 private:
  void skip_blanks();
  bool take(char wanted);
  void expect(char wanted);
  bool more(bool first, char close);
  std::uint32_t code_unit();
  std::string escaped();

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace fuse
