#include "fusebook/ops/loops.h"

#include <doctest/doctest.h>

#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "support/testing.h"

using namespace testing;
using fuse::DType;
using fuse::Loop;
using fuse::LoopTable;

namespace {

constexpr std::array sizes = {0, 1, 7, 8, 511, 512, 513};
constexpr int longest = 513;

const LoopTable& baseline() { return *fuse::loops_for("baseline"); }

// The tables of this machine that are not the baseline.
std::vector<const LoopTable*> others() {
  std::vector<const LoopTable*> tables;
  for (const char* name : {"x86-64-v3", "x86-64-v4"}) {
    if (const LoopTable* table = fuse::loops_for(name)) tables.push_back(table);
  }
  return tables;
}

// Elements at an address that is a multiple of nothing.
template <class T>
class Unaligned {
 public:
  explicit Unaligned(std::size_t n, std::size_t offset = 1)
      : bytes_(n * sizeof(T) + offset), offset_(offset) {}

  void* address() { return bytes_.data() + offset_; }
  T get(std::size_t i) const {
    T value;
    std::memcpy(&value, bytes_.data() + offset_ + i * sizeof(T), sizeof(T));
    return value;
  }
  void set(std::size_t i, T value) {
    std::memcpy(bytes_.data() + offset_ + i * sizeof(T), &value, sizeof(T));
  }

 private:
  std::vector<unsigned char> bytes_;
  std::size_t offset_;
};

// Operands for one loop, at four different misalignments.
template <class T>
struct Operands {
  explicit Operands(std::uint64_t seed) {
    Random random(seed);
    for (std::size_t k = 0; k < 4; ++k) {
      arrays.emplace_back(longest, k + (sizeof(T) == 8 ? 3 : 1));
      for (std::size_t i = 0; i < longest; ++i) {
        arrays[k].set(i, any_value<T>(random));
      }
    }
  }
  std::array<const void*, 4> addresses() {
    return {arrays[0].address(), arrays[1].address(), arrays[2].address(),
            arrays[3].address()};
  }
  std::vector<Unaligned<T>> arrays;
};

// One element at a time, with nothing but plain loops of one element.
template <class T>
std::vector<T> one_by_one(Loop loop, Operands<T>& operands, unsigned mask,
                          int n) {
  std::vector<T> results;
  for (int i = 0; i < n; ++i) {
    std::array<T, 4> x;
    for (unsigned k = 0; k < 4; ++k) {
      x[k] = operands.arrays[k].get((mask >> k & 1U) != 0 ? 0 : std::size_t(i));
    }
    const void* const in[] = {x.data(), &x[1], &x[2], &x[3]};
    T result;
    loop(&result, in, 1);
    results.push_back(result);
  }
  return results;
}

// Every element right, and nothing written behind them.
template <class T>
bool gives(Loop loop, Operands<T>& operands, int n,
           const std::vector<T>& expected) {
  const T guard = T(-12345);
  Unaligned<T> out(longest + 1);
  for (std::size_t i = 0; i <= longest; ++i) out.set(i, guard);
  loop(out.address(), operands.addresses().data(), n);
  for (std::size_t i = 0; i <= longest; ++i) {
    const T wanted = i < std::size_t(n) ? expected[i] : guard;
    if (!same_value(out.get(i), wanted)) return false;
  }
  return true;
}

// The result may replace an operand.
template <class T>
bool works_in_place(Loop loop, Operands<T> operands, std::size_t target, int n,
                    const std::vector<T>& expected) {
  const auto in = operands.addresses();
  loop(operands.arrays[target].address(), in.data(), n);
  for (std::size_t i = 0; i < std::size_t(n); ++i) {
    if (!same_value(operands.arrays[target].get(i), expected[i])) return false;
  }
  return true;
}

template <class T>
void check_operations(DType dtype) {
  for (std::size_t op = 0; op < std::size_t(fuse::op_count); ++op) {
    const auto& info = fuse::op_table()[op];
    Operands<T> operands(op);
    const Loop simple = baseline().ops[std::size_t(dtype)][op][0];
    for (unsigned mask = 0; mask < (1U << info.arity); ++mask) {
      const auto expected = one_by_one<T>(simple, operands, mask, longest);
      auto tables = others();
      tables.push_back(&baseline());
      for (const LoopTable* table : tables) {
        const Loop loop = table->ops[std::size_t(dtype)][op][mask];
        INFO(info.name << ", mask " << mask << ", " << table->name << ", "
                       << fuse::name_of(dtype));
        REQUIRE(bool(loop != nullptr));
        for (const int n : sizes) {
          INFO("size " << n);
          CHECK(gives(loop, operands, n, expected));
          for (int k = 0; k < info.arity; ++k) {
            if ((mask >> k & 1U) != 0) continue;
            CHECK(works_in_place(loop, operands, std::size_t(k), n, expected));
          }
        }
      }
    }
  }
}

template <class From, class To>
void check_cast(DType from, DType to) {
  Operands<From> operands(99);
  auto tables = others();
  tables.push_back(&baseline());
  for (const LoopTable* table : tables) {
    for (unsigned mask = 0; mask < 2; ++mask) {
      const Loop loop = table->casts[std::size_t(from)][std::size_t(to)][mask];
      for (const int n : sizes) {
        Unaligned<To> out(longest);
        loop(out.address(), operands.addresses().data(), n);
        for (std::size_t i = 0; i < std::size_t(n); ++i) {
          const From value = operands.arrays[0].get(mask == 0 ? i : 0);
          REQUIRE(same_value(out.get(i), To(value)));
        }
      }
    }
  }
}

}  // namespace

TEST_CASE("the tables of this machine") {
  REQUIRE(fuse::loops_for("baseline") != nullptr);
  CHECK(baseline().name == std::string("baseline"));
  for (const LoopTable* table : others()) {
    CHECK(fuse::loops_for(table->name) == table);
  }
  CHECK(fuse::loops_for("x86-64-v9") == nullptr);
  // The best one is used.
  const LoopTable* best = others().empty() ? &baseline() : others().back();
  CHECK(&fuse::loops() == best);
#if defined(__x86_64__)
  CHECK((fuse::loops_for("x86-64-v3") != nullptr) ==
        (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
         __builtin_cpu_supports("bmi2")));
#endif
}

TEST_CASE("every loop has the same bits everywhere") {
  check_operations<float>(DType::float32);
  check_operations<double>(DType::float64);
}

TEST_CASE("casts round to nearest everywhere") {
  check_cast<float, float>(DType::float32, DType::float32);
  check_cast<float, double>(DType::float32, DType::float64);
  check_cast<double, float>(DType::float64, DType::float32);
  check_cast<double, double>(DType::float64, DType::float64);
  const double halfway = 1 + 0x1p-24;
  const void* const in[] = {&halfway};
  float rounded = 0;
  fuse::loops().casts[1][0][0](&rounded, in, 1);
  CHECK(rounded == 1.0F);
}
