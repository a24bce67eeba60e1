// What tells machines apart that compute other bits.
#include "fusebook/distributed/machine_facts.h"

#include <doctest/doctest.h>

#include <cmath>
#include <set>

#include "fusebook/nn/gemm.h"
#include "fusebook/prelude/host_math.h"

using namespace fuse;

namespace {

// The next larger number.
template <class T>
T after(T value) {
  return std::nextafter(value, T(INFINITY));
}

}  // namespace

TEST_CASE("each function of the C library counts, in both dtypes") {
  const std::uint64_t usual = hash_of_functions(host_calls);
  CHECK(hash_of_functions(host_calls) == usual);
  std::set<std::uint64_t> hashes = {usual};
  std::size_t count = 1;
  Calls other = host_calls;
  const auto check = [&](auto& call, auto changed) {
    const auto right = call;
    call = changed;
    hashes.insert(hash_of_functions(other));
    CHECK(hashes.size() == ++count);
    call = right;
  };
#define CHECK_1(name)                                                   \
  check(other.name##_f32, [](float a) { return after(std::name(a)); }); \
  check(other.name##_f64, [](double a) { return after(std::name(a)); });
#define CHECK_2(name)                                             \
  check(other.name##_f32,                                         \
        [](float a, float b) { return after(std::name(a, b)); }); \
  check(other.name##_f64,                                         \
        [](double a, double b) { return after(std::name(a, b)); });
  FUSE_FUNCTIONS_1(CHECK_1)
  FUSE_FUNCTIONS_2(CHECK_2)
#undef CHECK_1
#undef CHECK_2
}

TEST_CASE("where a function has no value, its sign does not count") {
  Calls other = host_calls;
  other.log_f64 = [](double a) { return a < 0 ? -std::log(a) : std::log(a); };
  CHECK(hash_of_functions(other) == hash_of_functions(host_calls));
}

TEST_CASE("so do the products of an instruction set") {
  const GemmTable* const baseline = gemm_table_for("baseline");
  const std::uint64_t usual = hash_of_products(*baseline);
  CHECK(hash_of_products(*baseline) == usual);
  GemmTable other = *baseline;
  other.in_float32 = [](const GemmSizes& sizes, const GemmMatrix<float>& a,
                        const GemmMatrix<float>& b,
                        const GemmTarget<float>& c) {
    gemm_table_for("baseline")->in_float32(sizes, a, b, c);
    c.data[0] = after(c.data[0]);
  };
  CHECK(hash_of_products(other) != usual);
  other = *baseline;
  other.in_float64 = [](const GemmSizes& sizes, const GemmMatrix<double>& a,
                        const GemmMatrix<double>& b,
                        const GemmTarget<double>& c) {
    gemm_table_for("baseline")->in_float64(sizes, a, b, c);
    c.data[0] = after(c.data[0]);
  };
  CHECK(hash_of_products(other) != usual);
  // Wider instructions add in another order.
  if (const GemmTable* const wide = gemm_table_for("x86-64-v3")) {
    CHECK(hash_of_products(*wide) != usual);
  }
}

TEST_CASE("a machine says all of it") { CHECK(machine_facts().size() == 3); }
