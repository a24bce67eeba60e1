#include "bench/reading.h"

#include <cstdio>
#include <sstream>
#include <vector>

namespace fuse::bench {

// "reading<TAB>step<TAB>1000 x 64<TAB>compiled<TAB>44.1<TAB>1792000<TAB>limit
// <TAB>41.2", in one line; the last two are left out where there are none.
void tell(const Reading& reading) {
  std::printf("reading\t%s\t%s\t%s\t%.9g\t%lld", reading.kind.c_str(),
              reading.of_case.c_str(), reading.variant.c_str(), reading.us,
              static_cast<long long>(reading.bytes));
  if (!reading.divisor.empty()) {
    std::printf("\t%s\t%.9g", reading.divisor.c_str(), reading.divisor_us);
  }
  std::printf("\n");
  std::fflush(stdout);
}

std::optional<Reading> parse_reading(const std::string& line) {
  std::istringstream text(line);
  std::vector<std::string> fields;
  for (std::string field; std::getline(text, field, '\t');) {
    fields.push_back(field);
  }
  const bool divided = fields.size() == 8;
  if (fields.empty() || fields[0] != "reading") return std::nullopt;
  if (fields.size() != 6 && !divided) return std::nullopt;
  Reading reading = {fields[1], fields[2], fields[3], std::stod(fields[4]),
                     std::stoll(fields[5])};
  if (divided) {
    reading.divisor = fields[6];
    reading.divisor_us = std::stod(fields[7]);
  }
  return reading;
}

}  // namespace fuse::bench
