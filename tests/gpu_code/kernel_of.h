#pragma once

#include <stdexcept>
#include <string>

/// The name of the kernel that a CUDA text exports: the word before the first
/// "(" after "__global__ void", launch bounds aside. Throws when there is none.
inline std::string kernel_of(const std::string& text) {
  static const std::string start = "__global__ void";
  static const std::string bounds = "__launch_bounds__(";
  std::size_t at = text.find(start);
  if (at == text.npos) throw std::runtime_error("has no kernel");
  at = text.find_first_not_of(" \n", at + start.size());
  if (text.compare(at, bounds.size(), bounds) == 0) {
    at = text.find_first_not_of(" \n", text.find(')', at) + 1);
  }
  return text.substr(at, text.find('(', at) - at);
}
