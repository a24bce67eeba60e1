#include "bench/reading.h"

#include <cstdio>
#include <sstream>
#include <vector>

namespace fuse::bench {

// "reading<TAB>step<TAB>1000 x 64<TAB>compiled<TAB>44.1<TAB>1792000"
void tell(const Reading& reading) {
  std::printf("reading\t%s\t%s\t%s\t%.9g\t%lld\n", reading.kind.c_str(),
              reading.of_case.c_str(), reading.variant.c_str(), reading.us,
              static_cast<long long>(reading.bytes));
  std::fflush(stdout);
}

std::optional<Reading> parse_reading(const std::string& line) {
  std::istringstream text(line);
  std::vector<std::string> fields;
  for (std::string field; std::getline(text, field, '\t');) {
    fields.push_back(field);
  }
  if (fields.size() != 6 || fields[0] != "reading") return std::nullopt;
  return Reading{fields[1], fields[2], fields[3], std::stod(fields[4]),
                 std::stoll(fields[5])};
}

}  // namespace fuse::bench
