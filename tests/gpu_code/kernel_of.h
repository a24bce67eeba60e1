#pragma once

#include <stdexcept>
#include <string>

/// The name of the kernel that a CUDA text exports: the word before the first
/// "(" after "__global__ void", with what begins with "__", such as launch
/// bounds, left out. Throws when there is none.
inline std::string kernel_of(const std::string& text) {
  static const std::string start = "__global__ void";
  std::size_t at = text.find(start);
  if (at == text.npos) throw std::runtime_error("has no kernel");
  at = text.find_first_not_of(" \n", at + start.size());
  while (text.compare(at, 2, "__") == 0) {
    at = text.find_first_not_of(" \n", text.find(')', at) + 1);
  }
  return text.substr(at, text.find('(', at) - at);
}
