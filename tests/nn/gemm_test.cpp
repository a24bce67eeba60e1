#include "fusebook/nn/gemm.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "fusebook/ops/loops.h"
#include "fusebook/runtime/parallel.h"

using namespace fuse;

namespace {

/// A matrix in memory of its own, rows `leading` apart, from `offset` elements
/// behind an address that is a multiple of 64.
template <class T>
struct Stored {
  Stored(std::int64_t rows, std::int64_t columns, std::int64_t gap,
         std::size_t offset = 0)
      : leading(columns + gap), memory(std::size_t(rows * leading) + 80) {
    const auto address = reinterpret_cast<std::uintptr_t>(memory.data());
    first = (64 - address % 64) % 64 / sizeof(T) + offset;
  }
  T* data() { return memory.data() + first; }
  const T* data() const { return memory.data() + first; }

  std::int64_t leading;
  std::vector<T> memory;
  std::size_t first;
};

template <class T>
void fill(Stored<T>& matrix, unsigned seed) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<double> draw(-1, 1);
  for (T& value : matrix.memory) value = T(draw(engine));
}

template <class T>
struct Product {
  Product(GemmSizes shape, bool turn_a, bool turn_b, std::size_t offset = 0)
      : sizes(shape),
        transposed_a(turn_a),
        transposed_b(turn_b),
        a(turn_a ? shape.k : shape.m, turn_a ? shape.m : shape.k, 3, offset),
        b(turn_b ? shape.n : shape.k, turn_b ? shape.k : shape.n, 1, offset),
        c(shape.m, shape.n, 2, offset) {
    fill(a, 1);
    fill(b, 2);
    fill(c, 3);
    // The same numbers wherever they lie.
    std::rotate(a.memory.rbegin(), a.memory.rbegin() + std::ptrdiff_t(a.first),
                a.memory.rend());
    std::rotate(b.memory.rbegin(), b.memory.rbegin() + std::ptrdiff_t(b.first),
                b.memory.rend());
    std::rotate(c.memory.rbegin(), c.memory.rbegin() + std::ptrdiff_t(c.first),
                c.memory.rend());
  }

  GemmMatrix<T> left() const { return {a.data(), a.leading, transposed_a}; }
  GemmMatrix<T> right() const { return {b.data(), b.leading, transposed_b}; }
  GemmTarget<T> target(bool accumulate) {
    return {c.data(), c.leading, accumulate};
  }
  /// All rows, with the gaps between them.
  std::vector<T> result() const {
    return {c.data(), c.data() + sizes.m * c.leading - 2};
  }
  double left_at(std::int64_t i, std::int64_t l) const {
    return a.data()[transposed_a ? l * a.leading + i : i * a.leading + l];
  }
  double right_at(std::int64_t l, std::int64_t j) const {
    return b.data()[transposed_b ? j * b.leading + l : l * b.leading + j];
  }

  GemmSizes sizes;
  bool transposed_a;
  bool transposed_b;
  Stored<T> a;
  Stored<T> b;
  Stored<T> c;
};

template <class T>
void multiply(const GemmSizes& sizes, const GemmMatrix<T>& a,
              const GemmMatrix<T>& b, const GemmTarget<T>& c) {
  const GemmJob<T> job = {sizes, a, b, c};
  gemm<T>({&job, 1});
}

/// Every element against a plain sum in double, and that what lies between the
/// rows of the result stays as it was.
template <class T>
void check_product(const Product<T>& done, const std::vector<T>& before,
                   bool accumulate) {
  const double unit = double(std::numeric_limits<T>::epsilon());
  double worst = 0;
  std::vector<T> rest = done.c.memory;
  for (std::int64_t i = 0; i < done.sizes.m; ++i) {
    for (std::int64_t j = 0; j < done.sizes.n; ++j) {
      const auto at = done.c.first +
                      std::size_t(i) * std::size_t(done.c.leading) +
                      std::size_t(j);
      double sum = accumulate ? double(before[at]) : 0;
      double size = std::abs(sum);
      for (std::int64_t l = 0; l < done.sizes.k; ++l) {
        const double term = done.left_at(i, l) * done.right_at(l, j);
        sum += term;
        size += std::abs(term);
      }
      const double bound = unit * double(done.sizes.k + 2) * size;
      const double off = std::abs(double(done.c.memory[at]) - sum);
      worst = std::max(worst, off == 0 ? 0 : off / bound);
      rest[at] = before[at];
    }
  }
  CHECK(worst <= 1);
  const bool untouched =
      std::memcmp(rest.data(), before.data(), rest.size() * sizeof(T)) == 0;
  CHECK(untouched);
}

const std::vector<GemmSizes> shapes = {
    {1, 1, 1},   {1, 1, 100}, {1, 7, 5},     {9, 1, 33},    {3, 4, 5},
    {17, 2, 64}, {32, 10, 1}, {5, 6, 0},     {50, 49, 129}, {200, 1, 3},
    {1, 300, 7}, {193, 2, 9}, {385, 200, 21}};

template <class T>
void check_all(const GemmTable* table) {
  for (const GemmSizes& sizes : shapes) {
    for (const int turned : {0, 1, 2, 3}) {
      for (const bool accumulate : {false, true}) {
        CAPTURE(sizes.m);
        CAPTURE(sizes.n);
        CAPTURE(sizes.k);
        CAPTURE(turned);
        Product<T> product(sizes, (turned & 1) != 0, (turned & 2) != 0);
        const std::vector<T> before = product.c.memory;
        const auto target = product.target(accumulate);
        if (table == nullptr) {
          multiply(sizes, product.left(), product.right(), target);
        } else if constexpr (sizeof(T) == sizeof(float)) {
          table->in_float32(sizes, product.left(), product.right(), target);
        } else {
          table->in_float64(sizes, product.left(), product.right(), target);
        }
        check_product(product, before, accumulate);
      }
    }
  }
}

template <class T>
std::vector<T> result_of(const GemmSizes& sizes, int turned,
                         std::size_t offset = 0) {
  Product<T> product(sizes, (turned & 1) != 0, (turned & 2) != 0, offset);
  multiply(sizes, product.left(), product.right(), product.target(false));
  return product.result();
}

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() &&
         std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

}  // namespace

TEST_CASE_TEMPLATE("products agree with plain sums", T, float, double) {
  check_all<T>(nullptr);
}

TEST_CASE_TEMPLATE("so do those of every instruction set", T, float, double) {
  int seen = 0;
  for (const char* set : {"baseline", "x86-64-v3", "x86-64-v4"}) {
    const GemmTable* const table = gemm_table_for(set);
    CHECK((table != nullptr) == (loops_for(set) != nullptr));
    if (table == nullptr) continue;
    CAPTURE(set);
    ++seen;
    check_all<T>(table);
  }
  CHECK(seen >= 1);
  CHECK(gemm_table_for("none") == nullptr);
}

TEST_CASE_TEMPLATE("bits depend on neither threads nor addresses", T, float,
                   double) {
  for (const GemmSizes& sizes :
       {GemmSizes{500, 400, 70}, GemmSizes{1, 700, 600}, GemmSizes{700, 1, 600},
        GemmSizes{4, 3, 5}, GemmSizes{32, 10, 300}}) {
    for (const int turned : {0, 1, 2, 3}) {
      CAPTURE(sizes.m);
      CAPTURE(turned);
      set_thread_count(1);
      const std::vector<T> one = result_of<T>(sizes, turned);
      for (const int threads : {2, 3, 8}) {
        set_thread_count(threads);
        CHECK(same_bits(result_of<T>(sizes, turned), one));
      }
      for (const std::size_t offset : {1, 2, 3, 5, 8}) {
        CHECK(same_bits(result_of<T>(sizes, turned, offset), one));
      }
    }
  }
  set_thread_count(0);
}

TEST_CASE_TEMPLATE("many products together have the bits of each alone", T,
                   float, double) {
  std::vector<Product<T>> alone;
  std::vector<Product<T>> together;
  std::vector<bool> accumulates = {false};
  // One block, so that those of the others begin at odd numbers.
  for (auto* const list : {&alone, &together}) {
    list->emplace_back(GemmSizes{2, 2, 2}, false, false);
  }
  for (const GemmSizes& sizes : shapes) {
    for (const int turned : {0, 1, 2, 3}) {
      for (auto* const list : {&alone, &together}) {
        list->emplace_back(sizes, (turned & 1) != 0, (turned & 2) != 0);
      }
      accumulates.push_back(turned == 2);
    }
  }
  for (std::size_t i = 0; i < alone.size(); ++i) {
    Product<T>& each = alone[i];
    multiply(each.sizes, each.left(), each.right(),
             each.target(accumulates[i]));
  }
  const std::vector<Product<T>> before = together;
  for (const int threads : {1, 2, 3, 8}) {
    CAPTURE(threads);
    set_thread_count(threads);
    together = before;
    std::vector<GemmJob<T>> jobs;
    for (std::size_t i = 0; i < together.size(); ++i) {
      Product<T>& each = together[i];
      jobs.push_back(
          {each.sizes, each.left(), each.right(), each.target(accumulates[i])});
    }
    gemm<T>(jobs);
    for (std::size_t i = 0; i < together.size(); ++i) {
      CAPTURE(i);
      CHECK(same_bits(together[i].result(), alone[i].result()));
    }
  }
  set_thread_count(0);
  gemm<T>({});
}

TEST_CASE("a NaN and an infinity go where they belong") {
  const float inf = std::numeric_limits<float>::infinity();
  const std::vector<float> a = {1, inf, 0, 2};
  const std::vector<float> b = {0, 1, 0, 3};
  std::vector<float> c = {NAN, NAN, NAN, NAN};
  multiply<float>({2, 2, 2}, {a.data(), 2}, {b.data(), 2}, {c.data(), 2});
  CHECK(std::isnan(c[0]));  // inf * 0
  CHECK(c[1] == inf);
  CHECK(c[2] == 0);
  CHECK(c[3] == 6);
}

TEST_CASE("nothing is read or written for an empty product") {
  multiply<float>({0, 3, 2}, {nullptr, 2}, {nullptr, 3}, {nullptr, 3});
  multiply<float>({3, 0, 2}, {nullptr, 2}, {nullptr, 1}, {nullptr, 1});
  std::vector<float> c = {1, 2};
  multiply<float>({1, 2, 0}, {nullptr, 1}, {nullptr, 2}, {c.data(), 2, true});
  CHECK(c == std::vector<float>{1, 2});
  multiply<float>({1, 2, 0}, {nullptr, 1}, {nullptr, 2}, {c.data(), 2});
  CHECK(c == std::vector<float>{0, 0});
}
