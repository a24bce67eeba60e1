// One step of Adam on a tensor of more than 2^31 elements, every element
// checked against plain scalar code.
//
// Four arrays of that size are 34 GB. The parameters get memory of their own;
// the gradients, and where memory is short the two averages as well, are one
// small file mapped again and again. Averages that share memory are only exact
// when nothing of the past counts: betas of zero.
#include <doctest/doctest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "fusebook/fusebook.h"
#include "fusebook/support/available_memory.h"
#include "fusebook/support/file_io.h"
#include "support/testing.h"

using fuse::Backend;
using fuse::Tensor;
using fuse::TensorList;

namespace {

constexpr std::int64_t border = std::int64_t(1) << 31;
constexpr std::int64_t count = border + 12345;
constexpr std::size_t bytes = std::size_t(count) * sizeof(float);
constexpr std::int64_t period = 1 << 20;  // of the gradients
constexpr std::size_t period_bytes = period * sizeof(float);

constexpr float rate = 0.01F;
constexpr float eps = 1e-8F;

/// Room for `count` floats.
class Mapping {
 public:
  Mapping()
      : data_(mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {
    if (data_ == MAP_FAILED)
      throw fuse::Error("no room: " + fuse::errno_text());
  }
  ~Mapping() { munmap(data_, bytes); }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  /// The same `period` floats everywhere.
  void repeat() {
    const fuse::UniqueFd file(memfd_create("period", MFD_CLOEXEC));
    REQUIRE(ftruncate(file.get(), off_t(period_bytes)) == 0);
    for (std::size_t at = 0; at < bytes; at += period_bytes) {
      const std::size_t size = std::min(period_bytes, bytes - at);
      char* const place = static_cast<char*>(data_) + at;
      REQUIRE(mmap(place, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
                   file.get(), 0) == place);
    }
  }
  float* floats() const { return static_cast<float*>(data_); }
  Tensor tensor() const { return fuse::from_blob(data_, {count}); }

 private:
  void* data_;
};

/// Numbers that come again after a prime number of elements: an index that
/// lost a bit, or came out one too far, finds another number.
class Parameters {
 public:
  Parameters() {
    testing::Random random(31);
    for (float& value : values_) value = float(random.uniform(-1, 1));
  }
  /// Calls `visit(i, value)` for every element.
  template <class Visit>
  void for_each(Visit visit) const {
    std::size_t turn = 0;
    for (std::int64_t i = 0; i < count; ++i) {
      visit(i, values_[turn]);
      if (++turn == values_.size()) turn = 0;
    }
  }

 private:
  std::array<float, 10007> values_ = {};
};

struct Betas {
  double beta1;
  double beta2;
};

/// The first step of Adam for one element, from averages of zero.
struct ScalarAdam {
  explicit ScalarAdam(const Betas& b)
      : weight1(float(1 - b.beta1)),
        weight2(float(1 - b.beta2)),
        step_size(float(-(double(rate) / (1 - b.beta1)))),
        correction2(float(std::sqrt(1 - b.beta2))) {}

  float operator()(float parameter, float gradient) const {
    const float average = weight1 * gradient;
    const float square = weight2 * (gradient * gradient);
    const float denominator = std::sqrt(square) / correction2 + eps;
    return parameter + step_size * (average / denominator);
  }

  float weight1;
  float weight2;
  float step_size;
  float correction2;
};

// The operations of Adam's step on lists, with a step count of one.
void adam_step(const Tensor& param, const Tensor& gradient,
               const Tensor& average, const Tensor& square, const Betas& b) {
  const TensorList params({param});
  const TensorList gradients({gradient});
  const TensorList averages({average});
  const TensorList squares({square});
  foreach_lerp_(averages, gradients, 1.0 - b.beta1);
  foreach_mul_(squares, b.beta2);
  foreach_addcmul_(squares, gradients, gradients, 1.0 - b.beta2);
  const TensorList denominators = foreach_sqrt(squares);
  foreach_div_(denominators, std::sqrt(1 - b.beta2));
  foreach_add_(denominators, double(eps));
  foreach_addcdiv_(params, averages, denominators,
                   -(double(rate) / (1 - b.beta1)));
}

bool same_bits(float a, float b) { return std::memcmp(&a, &b, sizeof(a)) == 0; }

void check_step(Backend backend, bool roomy) {
  // Without room for them the averages forget everything at once.
  const Betas betas = roomy ? Betas{0.9, 0.999} : Betas{0, 0};
  const Mapping params;
  Mapping gradients;
  Mapping averages;
  Mapping squares;
  gradients.repeat();
  if (!roomy) {
    averages.repeat();
    squares.repeat();
  }
  testing::Random random(47);
  for (std::int64_t i = 0; i < period; ++i) {
    const double sign = random.chance(0.5) ? 1 : -1;
    gradients.floats()[i] = float(sign * random.uniform(0.25, 1));
  }
  const Parameters before;
  float* const now = params.floats();
  before.for_each([&](std::int64_t i, float value) { now[i] = value; });

  auto step = fuse::compile(
      [&] {
        adam_step(params.tensor(), gradients.tensor(), averages.tensor(),
                  squares.tensor(), betas);
      },
      {.backend = backend});
  step();
  CHECK(step.counters().launches == 1);

  const ScalarAdam expected(betas);
  std::int64_t wrong = 0;
  std::int64_t first_wrong = -1;
  std::vector<std::int64_t> seen;
  before.for_each([&](std::int64_t i, float value) {
    const float gradient = gradients.floats()[i % period];
    const bool right = same_bits(now[i], expected(value, gradient));
    if (i == 0 || i == border - 1 || i == border || i == count - 1) {
      CAPTURE(i);
      CHECK(right);
      CHECK(now[i] != value);
      seen.push_back(i);
    }
    if (!right && wrong++ == 0) first_wrong = i;
  });
  CHECK(seen.size() == 4);
  CHECK(wrong == 0);
  CHECK(first_wrong == -1);
}

}  // namespace

TEST_CASE("a step on more than 2^31 elements") {
  const std::int64_t available = fuse::available_memory();
  const bool roomy = available > std::int64_t(3 * bytes) + (1LL << 31);
  if (available < std::int64_t(bytes) + (1LL << 30)) {
    FAIL("this test needs " << fuse::format_bytes(bytes + (1LL << 30))
                            << " of memory");
  }
  MESSAGE(std::string(roomy ? "averages of their own, betas 0.9 and 0.999"
                            : "averages that share memory, betas 0"));
  SUBCASE("compiled") { check_step(Backend::compiled, roomy); }
  SUBCASE("interpreted") { check_step(Backend::interpreted, roomy); }
}
