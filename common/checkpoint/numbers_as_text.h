#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace fuse {

// As messages name what stands in a file.
std::string quoted(const std::string& text);

// Numbers of a checkpoint are texts from which all bits come back. A text that is not
// a number is an Error that says `name`.
std::string list_text(const std::vector<double>& values);
double parse_number(const std::string& name, const std::string& text);
std::vector<double> parse_list(const std::string& name,
                               const std::string& text);
std::int64_t parse_count(const std::string& name, const std::string& text);

}  // namespace fuse
