#pragma once

#include <doctest/doctest.h>

#include <cstddef>

#include "fusebook/device/device.h"
#include "fusebook/nn/cublas.h"

namespace testing {

// A cuBLAS of plain loops over columns, on the simulated GPU, whose memory the
// host can read.
struct FakeCublas {
  long products = 0;
  long calls = 0;  // each of one product or of several
  int code = 0;    // what every product returns
};
inline FakeCublas fake;

template <class T>
int multiply_one(fuse::CublasHandle, int op_a, int op_b, int m, int n, int k,
                 const T* alpha, const T* a, int lda, const T* b, int ldb,
                 const T* beta, T* c, int ldc) {
  ++fake.products;
  if (fake.code != 0) return fake.code;
  REQUIRE(lda >= (op_a == 0 ? m : k));
  REQUIRE(ldb >= (op_b == 0 ? k : n));
  REQUIRE(ldc >= m);
  const auto at = [](const T* matrix, int leading, int op, int row,
                     int column) {
    return op == 0 ? matrix[row + std::ptrdiff_t(column) * leading]
                   : matrix[column + std::ptrdiff_t(row) * leading];
  };
  for (int j = 0; j < n; ++j) {
    for (int i = 0; i < m; ++i) {
      double sum = 0;
      for (int l = 0; l < k; ++l) {
        sum += double(at(a, lda, op_a, i, l)) * double(at(b, ldb, op_b, l, j));
      }
      T& to = c[i + std::ptrdiff_t(j) * ldc];
      const T old = *beta == T(0) ? T(0) : *beta * to;
      to = T(double(*alpha) * sum + double(old));
    }
  }
  return 0;
}

template <class T>
int multiply(fuse::CublasHandle handle, int op_a, int op_b, int m, int n, int k,
             const T* alpha, const T* a, int lda, const T* b, int ldb,
             const T* beta, T* c, int ldc) {
  ++fake.calls;
  return multiply_one(handle, op_a, op_b, m, n, k, alpha, a, lda, b, ldb, beta,
                      c, ldc);
}

template <class T>
int multiply_several(fuse::CublasHandle handle, int op_a, int op_b, int m,
                     int n, int k, const T* alpha, const T* const* a, int lda,
                     const T* const* b, int ldb, const T* beta, T* const* c,
                     int ldc, int count) {
  ++fake.calls;
  int code = 0;
  for (int i = 0; i < count; ++i) {
    code = multiply_one(handle, op_a, op_b, m, n, k, alpha, a[i], lda, b[i],
                        ldb, beta, c[i], ldc);
  }
  return code;
}

inline const fuse::CublasApi fake_cublas = {
    [](fuse::CublasHandle* handle) {
      *handle = reinterpret_cast<fuse::CublasHandle>(&fake);
      return 0;
    },
    [](fuse::CublasHandle) { return 0; },
    [](fuse::CublasHandle, fuse::cuda::Stream) { return 0; },
    &multiply<float>,
    &multiply<double>,
    &multiply_several<float>,
    &multiply_several<double>,
    [](int) { return "made up"; },
};

/// Takes the place of cuBLAS for a scope.
struct Replaced {
  Replaced() {
    fake = {};
    fuse::set_cublas_api(&fake_cublas);
  }
  Replaced(const Replaced&) = delete;
  Replaced& operator=(const Replaced&) = delete;
  ~Replaced() {
    fuse::set_cublas_api(nullptr);
    fuse::set_default_device(fuse::cpu_device);
  }
};

}  // namespace testing
