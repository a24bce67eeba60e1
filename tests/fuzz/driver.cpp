// Runs the fuzz target where there is no libFuzzer: a fixed number of inputs
// from a fixed seed, some of random bytes, most made from earlier ones. Without
// libFuzzer nothing says which inputs reach new code, so all of the latest are
// kept.
//
//   program_fuzz [-seed=N] [-runs=N] [-max_len=N]
//   program_fuzz FILE...      runs what these files hold, once each
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "support/testing.h"

// NOLINTNEXTLINE(readability-identifier-naming)
extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv);
// NOLINTNEXTLINE(readability-identifier-naming)
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size);

namespace {

using Input = std::vector<std::uint8_t>;

Input current;

// Says which input it was, for `xxd -r -p`; then the signal takes its course.
extern "C" void tell_input(int number) {
  constexpr std::array<char, 17> digits = {"0123456789abcdef"};
  constexpr char heading[] = "program_fuzz: the input, in hex: ";
  bool told = write(STDERR_FILENO, heading, sizeof(heading) - 1) > 0;
  for (const std::uint8_t byte : current) {
    const std::array<char, 2> text = {digits[byte >> 4U], digits[byte & 15U]};
    told = told && write(STDERR_FILENO, text.data(), text.size()) > 0;
  }
  if (told) told = write(STDERR_FILENO, "\n", 1) > 0;
  signal(number, SIG_DFL);
  raise(number);
}

void run(Input input) {
  current = std::move(input);
  // A copy of exactly this size, for the address sanitizer's sake.
  const Input copy(current.begin(), current.end());
  LLVMFuzzerTestOneInput(copy.data(), copy.size());
}

class Inputs {
 public:
  Inputs(std::uint64_t seed, std::size_t max_len)
      : random_(seed), max_len_(max_len) {}

  Input next() {
    Input input = kept_.empty() || random_.chance(0.2) ? anything() : changed();
    if (input.size() > max_len_) input.resize(max_len_);
    if (kept_.size() < most_kept) {
      kept_.push_back(input);
    } else {
      kept_[std::size_t(random_.below(most_kept))] = input;
    }
    return input;
  }

 private:
  static constexpr int most_kept = 256;

  std::uint8_t byte() { return std::uint8_t(random_.bits() >> 7U); }
  std::size_t below(std::size_t n) {
    return std::size_t(random_.below(int(n)));
  }

  Input anything() {
    Input input(below(max_len_ + 1));
    for (std::uint8_t& each : input) each = byte();
    return input;
  }

  // A kept input with a few changes: a byte, a bit, a piece gone, a piece of
  // another one put in.
  Input changed() {
    Input input = random_.pick(kept_);
    for (int n = 1 + random_.below(4); n > 0; --n) change(input);
    return input;
  }

  void change(Input& input) {
    const std::size_t at = below(input.size() + 1);
    const std::size_t length = std::min(below(16), input.size() - at);
    const auto here = input.begin() + std::ptrdiff_t(at);
    switch (random_.below(4)) {
      case 0:
        if (at < input.size()) *here = byte();
        return;
      case 1:
        if (at < input.size()) *here ^= std::uint8_t(1U << below(8));
        return;
      case 2:
        input.erase(here, here + std::ptrdiff_t(length));
        return;
      default: {
        const Input other = random_.pick(kept_);
        const std::size_t from = below(other.size() + 1);
        const std::size_t count = std::min(below(32), other.size() - from);
        input.insert(here, other.begin() + std::ptrdiff_t(from),
                     other.begin() + std::ptrdiff_t(from + count));
      }
    }
  }

  testing::Random random_;
  std::size_t max_len_;
  std::vector<Input> kept_;
};

// The budget, named as libFuzzer names it.
struct Budget {
  long seed = 1;
  long runs = 20000;
  long max_len = 400;

  // Whether `word` is one of its options.
  bool take(const std::string& word) {
    return take(word, "-seed=", &seed) || take(word, "-runs=", &runs) ||
           take(word, "-max_len=", &max_len);
  }

 private:
  static bool take(const std::string& word, const std::string& start,
                   long* value) {
    if (!word.starts_with(start)) return false;
    *value = std::stol(word.substr(start.size()));
    return true;
  }
};

bool run_file(const char* path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    std::fprintf(stderr, "program_fuzz: cannot read '%s'\n", path);
    return false;
  }
  run(Input(std::istreambuf_iterator<char>(file), {}));
  return true;
}

void run_budget(const Budget& budget) {
  Inputs inputs{std::uint64_t(budget.seed), std::size_t(budget.max_len)};
  for (long i = 0; i < budget.runs; ++i) run(inputs.next());
}

}  // namespace

int main(int argc, char** argv) {
  LLVMFuzzerInitialize(&argc, &argv);
  for (const int number : {SIGABRT, SIGSEGV, SIGFPE, SIGILL, SIGBUS}) {
    signal(number, tell_input);
  }
  Budget budget;
  int files = 0;
  for (int i = 1; i < argc; ++i) {
    if (budget.take(argv[i])) continue;
    if (!run_file(argv[i])) return 2;
    ++files;
  }
  if (files == 0) run_budget(budget);
  return 0;
}
