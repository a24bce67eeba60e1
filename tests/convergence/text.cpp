#include "convergence/text.h"

#include <cctype>
#include <fstream>
#include <iterator>

#include "fusebook/support/error.h"

namespace fuse::convergence {
namespace {

constexpr std::int64_t blank = 26;

std::int64_t code_of(char c) {
  const auto byte = static_cast<unsigned char>(c);
  if (std::isspace(byte) != 0) return blank;
  if (std::isdigit(byte) != 0) return 29;
  if (byte < 128 && std::isalpha(byte) != 0) return std::tolower(byte) - 'a';
  switch (c) {
    case '.':
      return 27;
    case ',':
      return 28;
    case '-':
      return 30;
    default:
      return letters - 1;
  }
}

}  // namespace

Text::Text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  for (const char c : text) {
    const std::int64_t code = code_of(c);
    const bool again = !codes_.empty() && codes_.back() == blank;
    if (code != blank || !again) codes_.push_back(code);
  }
  const auto count = std::int64_t(codes_.size()) - context;
  for (std::int64_t begin = 0; begin < count; ++begin) {
    (begin % 8 == 0 ? unseen_ : seen_).push_back(begin);
  }
  if (seen_.empty()) {
    throw Error("convergence: " + path +
                " has no text to learn from: it is not there, or too short");
  }
}

Examples Text::at(const std::vector<std::int64_t>& begins) const {
  const auto count = std::int64_t(begins.size());
  Examples found{zeros({count, context * letters}), {}};
  float* row = found.input.data<float>();
  for (const std::int64_t begin : begins) {
    const std::int64_t* const code = codes_.data() + begin;
    for (std::int64_t i = 0; i < context; ++i) row[i * letters + code[i]] = 1;
    found.next.push_back(code[context]);
    row += context * letters;
  }
  return found;
}

}  // namespace fuse::convergence
