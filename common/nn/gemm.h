#pragma once

#include <cstdint>
#include <span>

namespace fuse {

/// Sizes of a matrix product: c is m x n, a is m x k, b is k x n.
struct GemmSizes {
  std::int64_t m;
  std::int64_t n;
  std::int64_t k;
};

/// A matrix operand, row-major: rows start `leading` elements apart. If
/// `transposed`, the memory holds the transpose of the operand.
template <class T>
struct GemmMatrix {
  const T* data;
  std::int64_t leading;
  bool transposed = false;
};

/// The destination of a product, which `accumulate` adds to the old contents.
template <class T>
struct GemmTarget {
  T* data;
  std::int64_t leading;
  bool accumulate = false;
};

/// A product of many that are computed together.
template <class T>
struct GemmJob {
  GemmSizes sizes;
  GemmMatrix<T> a;
  GemmMatrix<T> b;
  GemmTarget<T> c;
};

/// The products of one instruction set, on the calling thread. They throw
/// std::bad_alloc if there is no memory for packing the operands.
struct GemmTable {
  void (*in_float32)(const GemmSizes& sizes, const GemmMatrix<float>& a,
                     const GemmMatrix<float>& b, const GemmTarget<float>& c);
  void (*in_float64)(const GemmSizes& sizes, const GemmMatrix<double>& a,
                     const GemmMatrix<double>& b, const GemmTarget<double>& c);
};

/// For each job c = a b, or c += a b, in host memory for `T` = float or double,
/// computed by Eigen on the threads of the pool, which share the blocks of all
/// jobs; the only use of Eigen. Addresses must be aligned to the element, and no c
/// may overlap anything else.
///
/// The same operands give the same bits for any number of threads and at any
/// address, on every CPU of one instruction set (loops().name says which), but
/// not across instruction sets: wider ones contract and add in another order.
/// Throws Error if memory runs out.
template <class T>
void gemm(std::span<const GemmJob<T>> jobs);

/// The products of an instruction set, as for loops_for: nullptr if this build
/// or this machine does not have it.
const GemmTable* gemm_table_for(const char* instruction_set);

}  // namespace fuse
