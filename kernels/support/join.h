#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace fuse {

/// Adds an item to a text that lists several: "a, b".
inline void add_item(std::string& list, std::string_view item,
                     std::string_view separator = ", ") {
  if (!list.empty()) list += separator;
  list += item;
}

/// A text that lists all items, each as `text_of(item)` says it: "a, b, c".
template <class Items, class TextOf = std::identity>
std::string join(const Items& items, std::string_view separator = ", ",
                 TextOf text_of = {}) {
  std::string text;
  std::string_view before;
  for (const auto& item : items) {
    text += before;
    text += text_of(item);
    before = separator;
  }
  return text;
}

}  // namespace fuse
