#include "fusebook/nn/layers.h"

#include <fmt/core.h>

#include "fusebook/support/error.h"
#include "fusebook/support/number_text.h"

namespace fuse {

Tensor Flatten::operator()(const Tensor& input) const {
  check_defined(input, "the input");
  if (input.dim() == 0) return input.view({1});
  std::int64_t rest = 1;
  for (std::size_t d = 1; d < input.shape().size(); ++d) {
    rest *= input.shape()[d];
  }
  return input.contiguous().view({input.shape()[0], rest});
}

Dropout::Dropout(double p, Generator& generator)
    : Dropout(State{p, generator.bits()}) {
  if (p >= 0 && p <= 1) return;
  throw Error(fmt::format(
      "Dropout: the probability must be from 0 to 1, not {}", number_text(p)));
}

Tensor Dropout::operator()(const Tensor& input) const {
  State& own = self();
  check_defined(input, "the input");
  if (!own.training) return input;
  return dropout(input, own.p, own.seed, own.offset++);
}

Dropout Dropout::clone() const { return Dropout(self()); }

std::string Dropout::name() const {
  return fmt::format("Dropout({})", number_text(self().p));
}

}  // namespace fuse
