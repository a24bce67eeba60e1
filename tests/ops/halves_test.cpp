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

// By numbers that are wide enough: the neighbours of a float among upper halves,
// and how far it is from the one nearer to zero, in 65536ths.
namespace {

bool rounds_up(float x, unsigned random) {
  return std::bit_cast<std::uint32_t>(x) % 65536 + random >= 65536;
}
float neighbour(float x, bool up) {
  const std::uint32_t high = std::bit_cast<std::uint32_t>(x) / 65536;
  return std::bit_cast<float>((high + (up ? 1U : 0U)) * 65536U);
}

std::int64_t count_wrong(const LoopTable& table, float x,
                         std::int64_t* ups = nullptr) {
  static const std::vector<float> randoms = [] {
    std::vector<float> all(65536);
    for (std::size_t k = 0; k < all.size(); ++k) {
      all[k] = std::bit_cast<float>(std::uint32_t(k));
    }
    return all;
  }();
  const std::vector<float> same(randoms.size(), x);
  std::vector<float> results(randoms.size());
  const void* const in[] = {same.data(), randoms.data()};
  table.ops[std::size_t(DType::float32)][std::size_t(OpCode::stochastic_half)]
           [0](results.data(), in, i64(results.size()));
  std::int64_t wrong = 0;
  for (std::size_t k = 0; k < results.size(); ++k) {
    const bool up = rounds_up(x, unsigned(k));
    const bool good = std::isnan(x)
                          ? std::isnan(results[k])
                          : testing::same_value(results[k], neighbour(x, up));
    if (ups != nullptr) *ups += up ? 1 : 0;
    wrong += good ? 0 : 1;
  }
  return wrong;
}

}  // namespace

TEST_CASE("of all random numbers as many round up as say the lower half") {
  for (const LoopTable* table : tables()) {
    CAPTURE(table->name);
    for (const float x : {0.0F, -0.0F, 1.0F, 1 + 0x1p-8F, -1 - 0x1.8p-9F,
                          0x1.fffffep0F, 0x1p-149F, -0x1.2468p-130F,
                          0x1.fep127F, 0x1.fffffep127F, -0x1.ff2p127F}) {
      CAPTURE(x);
      std::int64_t ups = 0;
      CHECK(count_wrong(*table, x, &ups) == 0);
      // So the mean is the float itself.
      const double low = neighbour(x, false);
      const double next = neighbour(x, true);
      const double high =
          std::isfinite(next) ? next : std::copysign(0x1p128, x);
      CHECK(low + (high - low) * double(ups) / 65536 == double(x));
    }
    for (const float x : {HUGE_VALF, -HUGE_VALF, std::nanf("")}) {
      CHECK(count_wrong(*table, x) == 0);
    }
  }
}

TEST_CASE("every upper half stays, and has both neighbours") {
  std::vector<float> x;
  std::vector<float> random;
  for (std::uint32_t high = 0; high < 65536; ++high) {
    for (const std::uint32_t low : {0U, 1U, 0x7fffU, 0x8000U, 0xffffU}) {
      for (const unsigned drawn : {0U, 1U, 0x7fffU, 0x8000U, 0xffffU}) {
        x.push_back(std::bit_cast<float>(high * 65536U + low));
        random.push_back(
            std::bit_cast<float>(0xffff0000U * (drawn % 2) + drawn));
      }
    }
  }
  for (const LoopTable* table : tables()) {
    CAPTURE(table->name);
    std::vector<float> results(x.size());
    const void* const in[] = {x.data(), random.data()};
    table->ops[std::size_t(DType::float32)][std::size_t(
        OpCode::stochastic_half)][0](results.data(), in, i64(x.size()));
    std::int64_t wrong = 0;
    for (std::size_t k = 0; k < x.size(); ++k) {
      const bool up =
          rounds_up(x[k], std::bit_cast<std::uint32_t>(random[k]) % 65536);
      const bool good = std::isnan(x[k]) ? std::isnan(results[k])
                                         : testing::same_value(
                                               results[k], neighbour(x[k], up));
      wrong += good ? 0 : 1;
    }
    CHECK(wrong == 0);
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
