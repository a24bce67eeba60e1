// clang 14 has no std::source_location over this standard library, whose own
// needs a builtin function of newer compilers. Included before everything else
// in the fuzz target alone; empty where there is nothing to add.
#pragma once

#include <cstdint>
#include <version>

#if !__has_builtin(__builtin_source_location)
namespace std {  // NOLINT(cert-dcl58-cpp): what is missing belongs there

class source_location {
 public:
  static constexpr source_location current(
      const char* file = __builtin_FILE(),
      const char* function = __builtin_FUNCTION(),
      unsigned line = __builtin_LINE()) {
    source_location here;
    here.file_ = file;
    here.function_ = function;
    here.line_ = line;
    return here;
  }
  constexpr uint_least32_t line() const { return line_; }
  constexpr uint_least32_t column() const { return 0; }
  constexpr const char* file_name() const { return file_; }
  constexpr const char* function_name() const { return function_; }

 private:
  const char* file_ = "";
  const char* function_ = "";
  unsigned line_ = 0;
};

}  // namespace std
#endif
