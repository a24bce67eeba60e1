#include "fusebook/jit/cpu_levels.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace {

// What the kernel says of the first CPU.
std::set<std::string> words_of_kernel() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("flags")) continue;
    std::istringstream words(line.substr(line.find(':') + 1));
    std::set<std::string> found;
    for (std::string word; words >> word;) found.insert(word);
    return found;
  }
  return {};
}

}  // namespace

TEST_CASE("a CPU runs the levels whose features the kernel lists") {
  const std::set<std::string> here = words_of_kernel();
  if (here.empty()) return;  // another architecture
  // By the names of Linux, for each level from the second on.
  const std::vector<std::vector<std::string>> features = {
      {"cx16", "lahf_lm", "popcnt", "pni", "ssse3", "sse4_1", "sse4_2"},
      {"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe", "xsave"},
      {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}};
  std::vector<std::string> wanted = {fuse::cpu_levels()[0]};
  for (std::size_t i = 0; i < features.size(); ++i) {
    const bool all =
        std::all_of(features[i].begin(), features[i].end(),
                    [&](const auto& word) { return here.contains(word); });
    if (!all) break;
    wanted.insert(wanted.begin(), fuse::cpu_levels()[i + 1]);
  }
  CHECK(fuse::levels_run_here() == wanted);
}

TEST_CASE("levels are listed from the lowest on") {
  const auto& all = fuse::cpu_levels();
  CHECK(all == std::vector<std::string>{"x86-64", "x86-64-v2", "x86-64-v3",
                                        "x86-64-v4"});
}
