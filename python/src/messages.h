#pragma once

#include <source_location>
#include <string>

#include "fusebook/support/error.h"
#include "fusebook/support/source_place.h"

namespace fuse::python {

/// The place that messages name for calls from Python, where C++ has no place.
inline std::source_location here() {
  static constexpr auto place = std::source_location::current();
  return place;
}

/// A message without that place.
inline std::string without_place(std::string message) {
  for (const char* const before : {", at ", " at ", " in "}) {
    const std::string place = before + at(here());
    for (auto found = message.find(place); found != std::string::npos;
         found = message.find(place, found)) {
      message.erase(found, place.size());
    }
  }
  return message;
}

/// Calls `call`; its errors do not name that place.
template <class Call>
void without_place_in_errors(Call call) {
  try {
    call();
  } catch (const Error& error) {
    throw Error(without_place(error.what()));
  }
}

}  // namespace fuse::python
