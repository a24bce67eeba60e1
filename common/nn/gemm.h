#pragma once

#include <cstdint>

namespace fuse {

/// Of a product of matrices: c is m x n, a is m x k, b is k x n.
struct GemmSizes {
  std::int64_t m;
  std::int64_t n;
  std::int64_t k;
};

/// A matrix to multiply, row by row: rows begin `leading` elements apart. With
/// `transposed`, what lies there is the transpose of what is meant.
template <class T>
struct GemmMatrix {
  const T* data;
  std::int64_t leading;
  bool transposed = false;
};

/// Where a product goes; with `accumulate` it is added to what is there.
template <class T>
struct GemmTarget {
  T* data;
  std::int64_t leading;
  bool accumulate = false;
};

/// The products of one instruction set, on the calling thread. They throw
/// std::bad_alloc when there is no memory to pack the operands in.
struct GemmTable {
  void (*in_float32)(const GemmSizes& sizes, const GemmMatrix<float>& a,
                     const GemmMatrix<float>& b, const GemmTarget<float>& c);
  void (*in_float64)(const GemmSizes& sizes, const GemmMatrix<double>& a,
                     const GemmMatrix<double>& b, const GemmTarget<double>& c);
};

/// c = a b, or c += a b, in host memory for `T` = float or double, computed by
/// Eigen on the threads of the pool; the one door to it. Addresses are aligned
/// to the element, and c overlaps neither a nor b.
///
/// The same operands give the same bits for any number of threads and at any
/// address, on every CPU of one instruction set (loops().name says which), but
/// not across instruction sets: wider ones contract and add in another order.
/// Throws Error when memory runs out.
template <class T>
void gemm(const GemmSizes& sizes, const GemmMatrix<T>& a,
          const GemmMatrix<T>& b, const GemmTarget<T>& c);

/// The products of an instruction set, as of loops_for: nullptr where this
/// build or this machine has none of it.
const GemmTable* gemm_table_for(const char* instruction_set);

}  // namespace fuse
