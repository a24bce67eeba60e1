#include <doctest/doctest.h>

#include <cmath>
#include <fstream>
#include <string>

#include "convergence/comparison.h"
#include "convergence/text.h"
#include "convergence/training.h"
#include "fusebook/support/error.h"
#include "support/jit_testing.h"
#include "support/thread_count.h"

using namespace fuse;
using namespace fuse::convergence;

namespace {

Text text_of(const std::string& words) {
  const jit_testing::TempDir dir;
  std::ofstream(dir / "text") << words;
  return Text(dir / "text");
}

Text some_text() {
  std::string words;
  for (int i = 0; i < 40; ++i) words += "the quick brown fox, again. ";
  return text_of(words);
}

// With the bits of a kernel, which would have to be compiled for each.
Outcome interpreted(const Text& text, const Rule& rule,
                    const StorageKind& storage, int seed, int steps) {
  return train(text, rule, storage, seed, steps,
               {.fullgraph = true, .backend = Backend::interpreted});
}

template <class F>
void for_each_training(F f) {
  for (const Rule& rule : rules()) {
    for (const StorageKind& storage : storages()) {
      CAPTURE(rule.name);
      CAPTURE(storage.name);
      f(rule, storage);
    }
  }
}

}  // namespace

TEST_CASE("a text is read as letters, and an eighth of it is left out") {
  const Text text = text_of("Az \n\t.,7-\xc3.b");
  const std::vector<std::int64_t> codes = {0,  25, 26, 27, 28,
                                           29, 30, 31, 27, 1};
  CHECK(text.codes() == codes);
  CHECK(text.unseen() == std::vector<std::int64_t>{0});
  CHECK(text.seen() == std::vector<std::int64_t>{1, 2, 3, 4, 5});

  const Examples found = text.at({1, 5});
  CHECK(found.next == std::vector<std::int64_t>{29, 1});
  REQUIRE(found.input.shape() == Shape{2, context * letters});
  const float* const ones = found.input.data<float>();
  for (std::int64_t i = 0; i < 2 * context * letters; ++i) {
    CAPTURE(i);
    const std::int64_t place = i / letters;  // of four in each of two
    const std::int64_t begin = place < context ? 1 : 5;
    const auto letter = std::size_t(begin + place % context);
    CHECK(ones[i] == (codes[letter] == i % letters ? 1.0F : 0.0F));
  }
}

TEST_CASE("a file without text to learn from is an error that names it") {
  CHECK_THROWS_WITH_AS(Text("/nowhere/text"),
                       doctest::Contains("/nowhere/text has no text"), Error);
  CHECK_THROWS_WITH_AS(text_of("12345"), doctest::Contains("too short"), Error);
}

TEST_CASE("every training has the same bits again, on any number of threads") {
  const Text text = some_text();
  for_each_training([&](const Rule& rule, const StorageKind& storage) {
    const testing::Threads one(1);
    const Outcome once = interpreted(text, rule, storage, 0, 5);
    const Outcome other_seed = interpreted(text, rule, storage, 1, 5);
    CHECK(interpreted(text, rule, storage, 0, 5).loss == once.loss);
    CHECK(other_seed.loss != once.loss);
    set_thread_count(3);
    CHECK(interpreted(text, rule, storage, 0, 5).loss == once.loss);
  });
}

TEST_CASE("every step is one launch, and storages take the bytes they say") {
  const Text text = some_text();
  const auto count = std::size_t(parameter_count());
  for_each_training([&](const Rule& rule, const StorageKind& storage) {
    const Outcome wide = interpreted(text, rule, storages()[0], 0, 2);
    const Outcome found = interpreted(text, rule, storage, 0, 2);
    CHECK(found.launches == 2);
    CHECK(found.memory.params ==
          count * (storage.weights == DType::bfloat16 ? 2 : 4));
    // Counts of steps and biases remain as they are: hence no equation.
    const std::size_t masters = count * (storage.masters ? 4
                                         : storage.split ? 2
                                                         : 0);
    REQUIRE(found.memory.states >= masters);
    const std::size_t states = found.memory.states - masters;
    if (storage.coded) {
      CHECK(found.memory.scales > 0);
      CHECK(4 * states < wide.memory.states + 4096);
    } else {
      CHECK(found.memory.scales == 0);
      CHECK(states == wide.memory.states);
    }
  });
}

TEST_CASE("the first steps with fewer bytes are those of float32, nearly") {
  const Text text = some_text();
  const StorageKind& wide = storages()[0];
  const Rule& adam = rules()[0];
  const double begin = interpreted(text, adam, wide, 0, 0).loss;
  const double end = interpreted(text, adam, wide, 0, 100).loss;
  CHECK(end < 0.5 * begin);
  for (const StorageKind& storage : storages()) {
    CAPTURE(storage.name);
    const double loss = interpreted(text, adam, storage, 0, 100).loss;
    CHECK(std::abs(loss - end) < 0.1 * (begin - end));
  }
}

TEST_CASE("a compiled training has the bits of an interpreted one") {
  const Text text = some_text();
  const Rule& adam = rules().front();
  const StorageKind& fewest = storages().back();
  CHECK(train(text, adam, fewest, 0, 20).loss ==
        interpreted(text, adam, fewest, 0, 20).loss);
}

TEST_CASE("a storage holds if its mean is among the seeds of float32") {
  const Losses wide{"Adam", "float32", {2, 1, 3}};
  const Beside below = beside({"Adam", "a", {0.5, 1, 1.25}}, wide);
  CHECK(below.low == 1);
  CHECK(below.high == 3);
  CHECK(below.seeds_within == 2);
  CHECK_FALSE(below.holds);
  const Beside at_the_end = beside({"Adam", "b", {5, 3, 1}}, wide);
  CHECK(at_the_end.seeds_within == 2);
  CHECK(at_the_end.holds);
  CHECK(all_hold({wide, {"Adam", "b", {5, 3, 1}}}));
  CHECK_FALSE(all_hold({wide, {"Adam", "c", {5, 3, 2}}}));
  CHECK_FALSE(all_hold({wide, {"Adam", "d", {NAN, 2, 2}}}));
}
