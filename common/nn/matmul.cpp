#include "fusebook/nn/matmul.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "fusebook/nn/cublas.h"
#include "fusebook/nn/gemm.h"
#include "fusebook/ops/element.h"
#include "fusebook/support/error.h"

namespace fuse {
namespace {

void check_matrix(const Tensor& tensor, const char* what) {
  if (!tensor.defined()) {
    throw Error(std::string("matmul: ") + what + " is undefined");
  }
  if (tensor.dim() == 2) return;
  throw Error(std::string("matmul: ") + what + " has shape " +
              to_string(tensor.shape()) + "; expected two dimensions");
}

void check_fit(const Tensor& target, const Tensor& a, const Tensor& b) {
  check_matrix(a, "the first matrix");
  check_matrix(b, "the second matrix");
  check_matrix(target, "the result");
  const bool fit = a.shape()[1] == b.shape()[0] &&
                   target.shape() == Shape{a.shape()[0], b.shape()[1]};
  if (!fit) {
    throw Error("matmul: matrices of shape " + to_string(a.shape()) + " and " +
                to_string(b.shape()) + " have no product of shape " +
                to_string(target.shape()));
  }
  for (const Tensor* const other : {&b, &target}) {
    if (other->dtype() != a.dtype()) {
      throw Error(std::string("matmul: the dtypes ") + name_of(a.dtype()) +
                  " and " + name_of(other->dtype()) +
                  " differ; convert one with to()");
    }
    if (other->device() != a.device()) {
      throw Error("matmul: matrices on " + to_string(a.device()) + " and " +
                  to_string(other->device()) +
                  "; copy one to the other's device with to()");
    }
  }
}

/// A matrix as products take it: row-major or transposed.
struct Operand {
  Tensor tensor;
  std::int64_t leading;
  bool transposed;
};

bool lies_row_by_row(const Tensor& matrix) {
  const Shape& sizes = matrix.shape();
  const bool rows = sizes[0] <= 1 || matrix.strides()[0] >= sizes[1];
  return rows && (sizes[1] <= 1 || matrix.strides()[1] == 1);
}

std::int64_t leading_of(const Tensor& matrix) {
  const std::int64_t columns = std::max<std::int64_t>(matrix.shape()[1], 1);
  return matrix.shape()[0] <= 1 ? columns
                                : std::max(columns, matrix.strides()[0]);
}

bool is_aligned(const Tensor& tensor) {
  const auto address = reinterpret_cast<std::uintptr_t>(tensor.raw_data());
  return address % size_of(tensor.dtype()) == 0;
}

Operand operand_of(const Tensor& matrix) {
  if (is_aligned(matrix)) {
    if (lies_row_by_row(matrix)) return {matrix, leading_of(matrix), false};
    const Tensor turned = matrix.t();
    if (lies_row_by_row(turned)) return {matrix, leading_of(turned), true};
  }
  const Tensor copy =
      matrix.is_contiguous() ? matrix.clone() : matrix.contiguous();
  return {copy, leading_of(copy), false};
}

void multiply_on_host(const Tensor& target, const Operand& a, const Operand& b,
                      bool accumulate) {
  const GemmSizes sizes = {target.shape()[0], target.shape()[1],
                           a.tensor.shape()[1]};
  with_computing_type("matmul", target.dtype(), [&](auto type) {
    using T = decltype(type);
    const auto read = [](const Operand& operand) {
      return GemmMatrix<T>{static_cast<const T*>(operand.tensor.address(false)),
                           operand.leading, operand.transposed};
    };
    gemm<T>(sizes, read(a), read(b),
            {static_cast<T*>(target.address(true)), leading_of(target),
             accumulate});
  });
}

// cuBLAS is column-major: it sees transposes, and target' = b' a'.
void multiply_on(const Cublas& blas, const Tensor& target, const Operand& a,
                 const Operand& b, bool accumulate) {
  if (target.numel() == 0) return;
  const auto read = [](const Operand& operand) {
    return CublasMatrix{operand.tensor.address(false), operand.leading,
                        operand.transposed};
  };
  blas.multiply(target.dtype(),
                {target.shape()[1], target.shape()[0], a.tensor.shape()[1]},
                read(b), read(a),
                {target.address(true), leading_of(target), accumulate});
}

/// The target itself if a product can be written into it, else a copy.
Tensor writable(const Tensor& target) {
  if (lies_row_by_row(target) && is_aligned(target)) return target;
  return target.is_contiguous() ? target.clone() : target.contiguous();
}

/// Calls `run(written)` and copies the result to the target.
template <class Run>
void write_into(const Tensor& target, Run run) {
  const Tensor written = writable(target);
  run(written);
  if (written.impl() != target.impl()) Tensor(target).copy_(written);
}

}  // namespace

void matmul_into(const Tensor& target, const Tensor& a, const Tensor& b,
                 bool accumulate) {
  check_fit(target, a, b);
  const Cublas* const blas =
      is_reduced(target.dtype()) ? nullptr : cublas_for(target.device());
  if (blas != nullptr) {
    write_into(target, [&](const Tensor& written) {
      multiply_on(*blas, written, operand_of(a), operand_of(b), accumulate);
    });
    return;
  }
  const Tensor on_host = target.cpu();
  write_into(on_host, [&](const Tensor& written) {
    multiply_on_host(written, operand_of(a.cpu()), operand_of(b.cpu()),
                     accumulate);
  });
  if (on_host.impl() != target.impl()) Tensor(target).copy_(on_host);
}

}  // namespace fuse
