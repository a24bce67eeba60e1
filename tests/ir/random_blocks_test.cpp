// Random programs over lists of which some lie in blocks of 8 bits, of any size and
// of several: compiled,
// interpreted, simulated and run one operation at a time, they must leave the bits of
// the same operations over float32 lists, decoded before and coded after them by the
// prelude's functions.
//
//   FUSEBOOK_FUZZ=1000          that many programs, new ones at every run
//   FUSEBOOK_FUZZ_SEED=SEED     the one program with that seed
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <source_location>
#include <string>
#include <vector>

#include "fusebook/compile/compile.h"
#include "fusebook/foreach/foreach.h"
#include "fusebook/ops/ops.h"
#include "fusebook/prelude/blocks.h"
#include "fusebook/runtime/parallel.h"
#include "support/testing.h"
#include "support/thread_count.h"

using namespace fuse;
using testing::any_value;
using testing::Random;

namespace {

/// registers.push_back(op(in...)), where what is negative is a number.
struct Step {
  OpCode op{};
  std::vector<int> in;
};

constexpr int number_count = 3;

/// A program, and the lists that it works on.
struct Case {
  std::vector<std::int64_t> sizes;
  std::vector<DType> dtypes;                // of the lists
  std::vector<std::vector<Tensor>> before;  // in float32
  std::vector<double> numbers;
  std::vector<Step> steps;
  std::vector<int> stored;  // for each list, the register that goes there
};

Tensor random_numbers(std::int64_t size, Random& random) {
  Tensor made = empty({size});
  for (std::int64_t i = 0; i < size; ++i) {
    made.data<float>()[i] = any_value<float>(random);
  }
  return made;
}

Step any_step(int registers, Random& random) {
  Step step;
  do {
    step.op = OpCode(random.below(op_count));
  } while (is_move(step.op));
  for (int k = 0; k < info(step.op).arity; ++k) {
    const bool number = k > 0 && random.chance(0.3);
    step.in.push_back(number ? -1 - random.below(number_count)
                             : random.below(registers));
  }
  return step;
}

// Half of them in blocks of 256.
DType any_blocks(DType codes, Random& random) {
  const std::int64_t size = std::int64_t(32) << random.below(7);
  return random.chance(0.5) ? codes : with_block_size(codes, size);
}

Case make_case(std::uint64_t seed) {
  Random random(seed);
  static const std::vector<std::int64_t> usual = {
      0,   1,   2,   15,  16,  17,  31,  32,   33,   127,  128,
      129, 255, 256, 257, 511, 512, 513, 1025, 2047, 2048, 4097};
  Case made;
  const int tensors = 1 + random.below(4);
  for (int e = 0; e < tensors; ++e) made.sizes.push_back(random.pick(usual));
  if (random.chance(0.1)) made.sizes[0] = 15000 + random.below(20000);
  made.dtypes = {any_blocks(DType::block8, random),
                 any_blocks(DType::ublock8, random)};
  const int more = random.below(3);
  for (int k = 0; k < more; ++k) {
    made.dtypes.push_back(random.chance(0.5) ? DType::float32
                          : random.chance(0.5)
                              ? any_blocks(DType::block8, random)
                              : any_blocks(DType::ublock8, random));
  }
  for (std::size_t k = 0; k < made.dtypes.size(); ++k) {
    made.before.emplace_back();
    for (const std::int64_t size : made.sizes) {
      made.before.back().push_back(random_numbers(size, random));
    }
  }
  for (int k = 0; k < number_count; ++k) {
    made.numbers.push_back(any_value<double>(random));
  }
  const int lists = int(made.dtypes.size());
  const int steps = 1 + random.below(7);
  for (int n = 0; n < steps; ++n) {
    made.steps.push_back(any_step(lists + n, random));
  }
  for (int k = 0; k < lists; ++k) {
    made.stored.push_back(random.below(lists + steps));
  }
  return made;
}

std::string describe(const Case& made) {
  std::string text;
  for (const DType dtype : made.dtypes) {
    text.append(name_of(dtype)).append(" ");
  }
  for (const Step& step : made.steps) {
    text.append("\n").append(name_of(step.op));
    for (const int in : step.in) text.append(" ").append(std::to_string(in));
  }
  text.append("\nstored:");
  for (const int in : made.stored) text.append(" ").append(std::to_string(in));
  return text;
}

/// The program over these lists; what they become is stored at its end.
void play(const Case& made, const std::vector<TensorList>& lists) {
  std::vector<TensorList> registers;
  for (const TensorList& list : lists) {
    // Floats that stay what they are when the list is stored.
    registers.push_back(in_blocks(list.impl()->dtype)
                            ? foreach_to(list, DType::float32)
                            : foreach_mul(list, 1.0));
  }
  for (const Step& step : made.steps) {
    std::vector<Operand> operands;
    for (const int in : step.in) {
      if (in >= 0) {
        operands.emplace_back(registers[std::size_t(in)]);
      } else {
        operands.emplace_back(Scalar(made.numbers[std::size_t(-1 - in)]));
      }
    }
    std::vector<const Operand*> pointers;
    for (const Operand& each : operands) pointers.push_back(&each);
    registers.push_back(
        foreach_apply(step.op, pointers, std::source_location::current()));
  }
  for (std::size_t k = 0; k < lists.size(); ++k) {
    foreach_copy_(lists[k], registers[std::size_t(made.stored[k])]);
  }
}

// Each block as the only one of its tensor.
template <class Codes>
void code_in_place(Tensor list, std::int64_t size) {
  std::vector<device::bits8> bytes(std::size_t(size) + 4);
  const device::Blocks<Codes> alone(bytes.data());
  float* const values = list.data<float>();
  for (std::int64_t first = 0; first < list.numel(); first += size) {
    const std::int64_t n = std::min(size, list.numel() - first);
    device::encode_block(values + first, n, alone, 0);
    device::decode_block(alone, 0, n, values + first);
  }
}

/// Floats as they are when they have been in blocks.
void code_all(const Case& made, const std::vector<std::vector<Tensor>>& lists) {
  for (std::size_t k = 0; k < lists.size(); ++k) {
    for (const Tensor& each : lists[k]) {
      if (!in_blocks(made.dtypes[k])) continue;
      const std::int64_t size = block_size_of(made.dtypes[k]);
      if (has_sign(made.dtypes[k])) {
        code_in_place<device::SignedCodes>(each, size);
      } else {
        code_in_place<device::UnsignedCodes>(each, size);
      }
    }
  }
}

std::vector<std::vector<Tensor>> expected_of(const Case& made) {
  std::vector<std::vector<Tensor>> lists;
  std::vector<TensorList> handles;
  for (const auto& list : made.before) {
    lists.emplace_back();
    for (const Tensor& each : list) lists.back().push_back(each.clone());
    handles.emplace_back(lists.back());
  }
  code_all(made, lists);
  play(made, handles);
  code_all(made, lists);
  return lists;
}

bool same(const Tensor& a, const Tensor& b) {
  const std::vector<double> left = a.to_vector();
  const std::vector<double> right = b.to_vector();
  return std::equal(left.begin(), left.end(), right.begin(), right.end(),
                    testing::same_value<double>);
}

/// What each way to run it leaves in the lists.
template <class Run>
bool agrees(const Case& made, const std::vector<std::vector<Tensor>>& expected,
            Run run) {
  std::vector<TensorList> lists;
  for (std::size_t k = 0; k < made.before.size(); ++k) {
    std::vector<Tensor> tensors;
    for (const Tensor& each : made.before[k]) {
      tensors.push_back(each.to(made.dtypes[k]).clone());
    }
    lists.emplace_back(tensors);
  }
  run([&] { play(made, lists); });
  for (std::size_t k = 0; k < lists.size(); ++k) {
    std::size_t e = 0;
    for (const Tensor& each : lists[k]) {
      if (!same(each, expected[k][e++])) return false;
    }
  }
  return true;
}

void check_program(std::uint64_t seed) {
  const Case made = make_case(seed);
  CAPTURE(seed);
  const std::string text = describe(made);
  CAPTURE(text);
  const auto expected = expected_of(made);
  CHECK(agrees(made, expected, [](const auto& fn) { fn(); }));
  for (const Backend backend :
       {Backend::compiled, Backend::interpreted, Backend::simulated}) {
    for (const int threads : {1, 3}) {
      CAPTURE(int(backend));
      CAPTURE(threads);
      const testing::Threads count(threads);
      CHECK(agrees(made, expected, [&](const auto& fn) {
        auto step = compile(fn, {.fullgraph = true, .backend = backend});
        step();
      }));
    }
  }
}

}  // namespace

TEST_CASE("random programs over lists in blocks") {
  if (const char* const seed = std::getenv("FUSEBOOK_FUZZ_SEED")) {
    check_program(std::strtoull(seed, nullptr, 10));
    return;
  }
  const char* const wanted = std::getenv("FUSEBOOK_FUZZ");
  const int count =
      wanted == nullptr ? 8 : int(std::strtol(wanted, nullptr, 10));
  const std::uint64_t first =
      wanted == nullptr ? 1 : std::uint64_t(std::random_device()()) << 20;
  for (int n = 0; n < count; ++n) check_program(first + std::uint64_t(n));
}
