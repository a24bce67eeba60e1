// Floats in two halves of 16 bits, in the prebuilt loops of every instruction set.
#include <doctest/doctest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include "fusebook/ops/float16.h"
#include "fusebook/ops/loops.h"
#include "support/testing.h"

using namespace fuse;

namespace {

std::vector<const LoopTable*> tables() {
  std::vector<const LoopTable*> all;
  for (const char* name : {"baseline", "x86-64-v3", "x86-64-v4"}) {
    if (const LoopTable* table = loops_for(name)) all.push_back(table);
  }
  return all;
}

// What is computed at a time.
constexpr std::size_t room = 4096;

struct Halves {
  std::vector<float> whole = std::vector<float>(room);
  std::vector<float> high = std::vector<float>(room);
  std::vector<float> low = std::vector<float>(room);
  std::vector<BFloat16> stored_high = std::vector<BFloat16>(room);
  std::vector<Int16> stored_low = std::vector<Int16>(room);
  std::vector<float> joined = std::vector<float>(room);
};

void run(Loop loop, std::array<const void*, 2> in, void* out) {
  loop(out, in.data(), i64(room));
}

// Through memory of 16 bits, as steps do.
void split_and_join(const LoopTable& table, Halves& x) {
  const auto& ops = table.ops[std::size_t(DType::float32)];
  const auto& casts = table.casts;
  const auto float32 = std::size_t(DType::float32);
  const auto bfloat16 = std::size_t(DType::bfloat16);
  const auto int16 = std::size_t(DType::int16);
  run(ops[std::size_t(OpCode::high_half)][0], {x.whole.data()}, x.high.data());
  run(ops[std::size_t(OpCode::low_half)][0], {x.whole.data()}, x.low.data());
  run(casts[float32][bfloat16][0], {x.high.data()}, x.stored_high.data());
  run(casts[float32][int16][0], {x.low.data()}, x.stored_low.data());
  run(casts[bfloat16][float32][0], {x.stored_high.data()}, x.high.data());
  run(casts[int16][float32][0], {x.stored_low.data()}, x.low.data());
  run(ops[std::size_t(OpCode::join_halves)][0], {x.high.data(), x.low.data()},
      x.joined.data());
}

// By arithmetic on the bits that is no float's.
bool is_split(float whole, BFloat16 high, Int16 low, float joined) {
  const auto bits = std::bit_cast<std::uint32_t>(whole);
  if (std::isnan(whole)) {
    return std::isnan(float(high)) && low.number == 0 && std::isnan(joined);
  }
  const std::uint32_t rest = bits % 65536;
  const bool up = rest >= 32768;
  return high.bits == bits / 65536 + (up ? 1 : 0) &&
         low.number == std::int32_t(rest) - (up ? 65536 : 0) &&
         std::bit_cast<std::uint32_t>(joined) == bits;
}

// Floats whose bits are `first` and so many further ones, `apart` from each other.
std::int64_t count_wrong(const LoopTable& table, std::uint64_t first,
                         std::uint64_t apart) {
  Halves x;
  std::int64_t wrong = 0;
  for (std::uint64_t at = first; at < 1ULL << 32U; at += room * apart) {
    for (std::size_t k = 0; k < room; ++k) {
      x.whole[k] = std::bit_cast<float>(std::uint32_t(at + k * apart));
    }
    split_and_join(table, x);
    for (std::size_t k = 0; k < room; ++k) {
      wrong +=
          is_split(x.whole[k], x.stored_high[k], x.stored_low[k], x.joined[k])
              ? 0
              : 1;
    }
  }
  return wrong;
}

}  // namespace

TEST_CASE("a float comes back from its halves in every bit") {
  for (const LoopTable* table : tables()) {
    CAPTURE(table->name);
    // Each upper half with all lower halves that matter, and with others.
    for (const std::uint32_t low :
         {0U, 1U, 0x7fffU, 0x8000U, 0x8001U, 0xffffU}) {
      CHECK(count_wrong(*table, low, 65536) == 0);
    }
    CHECK(count_wrong(*table, 5, 41) == 0);
  }
}

TEST_CASE("whole numbers of 16 bits, in every table") {
  std::vector<double> values;
  for (int i = -32768; i <= 32767; ++i) values.push_back(i);
  for (const double x :
       {0.5, -0.5, -0.0, 1.75, -1.75, 32767.5, 32768.0, -32769.0, 1e30, -1e30,
        HUGE_VAL, -HUGE_VAL, std::nan("")}) {
    values.push_back(x);
  }
  const auto wanted = [](double x) {
    if (std::isnan(x)) return 0.0;
    const double within = x > 32767 ? 32767 : x < -32768 ? -32768 : x;
    return double(std::int64_t(within));
  };
  const auto n = i64(values.size());
  for (const LoopTable* table : tables()) {
    CAPTURE(table->name);
    const std::vector<float> floats(values.begin(), values.end());
    std::vector<Int16> stored(values.size());
    std::vector<Int16> of_doubles(values.size());
    std::vector<float> rounded(values.size());
    std::vector<double> back(values.size());
    const auto int16 = std::size_t(DType::int16);
    const void* in = floats.data();
    table->casts[0][int16][0](stored.data(), &in, n);
    table->rounds[0][int16][0](rounded.data(), &in, n);
    in = values.data();
    table->casts[1][int16][0](of_doubles.data(), &in, n);
    in = stored.data();
    table->casts[int16][1][0](back.data(), &in, n);
    for (std::size_t i = 0; i < values.size(); ++i) {
      CHECK(stored[i].number == wanted(values[i]));
      CHECK(of_doubles[i].number == stored[i].number);
      CHECK(Int16(values[i]).number == stored[i].number);
      CHECK(testing::same_value(double(rounded[i]), wanted(values[i])));
      CHECK(back[i] == wanted(values[i]));
    }
    for (const float small : {-0.0F, -0.25F, -0.75F}) {
      float alone = 1;
      in = &small;
      table->rounds[0][int16][0](&alone, &in, 1);
      CHECK(testing::same_value(alone, 0.0F));
    }
  }
}
