#include "fusebook/distributed/machine_facts.h"

#include <fmt/core.h>

#include <cmath>
#include <limits>
#include <string_view>

#include "fusebook/ops/loops.h"
#include "fusebook/support/content_hash.h"
#include "fusebook/support/version.h"

namespace fuse {
namespace {

class Hash {
 public:
  // Where there is no value, its sign may be any.
  template <class T>
  void add(T value) {
    if (std::isnan(value)) value = std::numeric_limits<T>::quiet_NaN();
    value_ = content_hash(
        std::string_view(reinterpret_cast<const char*>(&value), sizeof(value)),
        value_);
  }
  std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 0;
};

// From -7 to 7, in steps that no binary fraction has.
template <class T, class Add>
void for_each_sample(Add add) {
  for (int k = -256; k <= 256; ++k) add(T(k) / T(37));
}

template <class T>
void add_calls(Hash& hash, T (*function)(T)) {
  for_each_sample<T>([&](T x) { hash.add(function(x)); });
}

template <class T>
void add_calls(Hash& hash, T (*function)(T, T)) {
  for_each_sample<T>([&](T x) { hash.add(function(x + 9, x)); });
}

template <class T>
std::vector<T> samples(std::int64_t count, int seed) {
  std::vector<T> all;
  for (std::int64_t i = 0; i < count; ++i) {
    all.push_back(T((i * 7919 + seed) % 2003 - 1001) / T(997));
  }
  return all;
}

template <class T, class Product>
void add_product(Hash& hash, Product product) {
  constexpr GemmSizes sizes = {21, 19, 301};
  const std::vector<T> a = samples<T>(sizes.m * sizes.k, 1);
  const std::vector<T> b = samples<T>(sizes.k * sizes.n, 2);
  std::vector<T> c(std::size_t(sizes.m * sizes.n));
  product(sizes, GemmMatrix<T>{a.data(), sizes.k},
          GemmMatrix<T>{b.data(), sizes.n}, GemmTarget<T>{c.data(), sizes.n});
  for (const T each : c) hash.add(each);
}

}  // namespace

std::uint64_t hash_of_functions(const Calls& library) {
  Hash hash;
#define ADD(name)                      \
  add_calls(hash, library.name##_f32); \
  add_calls(hash, library.name##_f64);
  FUSE_FUNCTIONS_1(ADD)
  FUSE_FUNCTIONS_2(ADD)
#undef ADD
  return hash.value();
}

std::uint64_t hash_of_products(const GemmTable& products) {
  Hash hash;
  add_product<float>(hash, products.in_float32);
  add_product<double>(hash, products.in_float64);
  return hash.value();
}

std::vector<std::string> machine_facts() {
  static const std::uint64_t functions = hash_of_functions(host_calls);
  static const std::uint64_t products =
      hash_of_products(*gemm_table_for(loops().name));
  return {
      fmt::format("Fusebook {}", version()),
      fmt::format("a C library whose functions give {}", hex_digits(functions)),
      fmt::format("matrix products with {} that give {}", loops().name,
                  hex_digits(products))};
}

}  // namespace fuse
