// A text as what a model of its characters learns from: the letter that follows
// those before it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fusebook/tensor/tensor.h"

namespace fuse::convergence {

/// a to z, a blank for any blanks, a full stop, a comma, a digit, a hyphen, and
/// one for all else.
constexpr std::int64_t letters = 32;
/// So many letters are read to tell the next.
constexpr std::int64_t context = 4;

/// The letters of a context, each a one in a row of zeros, and what follows.
struct Examples {
  Tensor input;
  std::vector<std::int64_t> next;
};

/// Every eighth example is unseen: training has to leave it out.
class Text {
 public:
  /// Throws Error for a file that cannot be read or is too short.
  explicit Text(const std::string& path);

  const std::vector<std::int64_t>& codes() const { return codes_; }
  const std::vector<std::int64_t>& seen() const { return seen_; }
  const std::vector<std::int64_t>& unseen() const { return unseen_; }
  /// The examples that begin at these letters.
  Examples at(const std::vector<std::int64_t>& begins) const;

 private:
  std::vector<std::int64_t> codes_;
  std::vector<std::int64_t> seen_;
  std::vector<std::int64_t> unseen_;
};

}  // namespace fuse::convergence
