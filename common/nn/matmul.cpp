#include "fusebook/nn/matmul.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "fusebook/device/backend.h"
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

void check_alike(const Tensor& a, const Tensor& b) {
  if (b.dtype() != a.dtype()) {
    throw Error(std::string("matmul: the dtypes ") + name_of(a.dtype()) +
                " and " + name_of(b.dtype()) +
                " differ; convert one with to()");
  }
  if (b.device() != a.device()) {
    throw Error("matmul: matrices on " + to_string(a.device()) + " and " +
                to_string(b.device()) +
                "; copy one to the other's device with to()");
  }
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
  check_alike(a, b);
  check_alike(a, target);
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

/// A product, with copies of whatever cannot be read or written as it lies.
struct Product {
  Operand a;
  Operand b;
  Tensor written;

  ProductSizes sizes() const {
    return {written.shape()[0], written.shape()[1], a.tensor.shape()[1]};
  }
};

Tensor writable(const Tensor& target) {
  if (lies_row_by_row(target) && is_aligned(target)) return target;
  return target.is_contiguous() ? target.clone() : target.contiguous();
}

void multiply_on_host(std::span<const Product> products, bool accumulate) {
  const DType dtype = products[0].written.dtype();
  with_computing_type("matmul", dtype, [&](auto type) {
    using T = decltype(type);
    const auto read = [](const Operand& operand) {
      return GemmMatrix<T>{static_cast<const T*>(operand.tensor.address(false)),
                           operand.leading, operand.transposed};
    };
    std::vector<GemmJob<T>> jobs;
    jobs.reserve(products.size());
    for (const Product& each : products) {
      const auto [m, n, k] = each.sizes();
      jobs.push_back({{m, n, k},
                      read(each.a),
                      read(each.b),
                      {static_cast<T*>(each.written.address(true)),
                       leading_of(each.written), accumulate}});
    }
    gemm<T>(jobs);
  });
}

using Group = std::vector<const Product*>;

/// The products that cuBLAS computes in one call: those of one shape whose
/// matrices lie alike.
std::vector<Group> groups_of(std::span<const Product> products) {
  std::map<std::array<std::int64_t, 8>, Group> groups;
  for (const Product& each : products) {
    if (each.written.numel() == 0) continue;
    const auto [m, n, k] = each.sizes();
    groups[{m, n, k, each.a.leading, std::int64_t(each.a.transposed),
            each.b.leading, std::int64_t(each.b.transposed),
            leading_of(each.written)}]
        .push_back(&each);
  }
  std::vector<Group> all;
  for (auto& [layout, group] : groups) all.push_back(std::move(group));
  return all;
}

/// Addresses in the memory of a device, for a call that is given arrays of them.
class AddressesOn {
 public:
  AddressesOn(const Device& device,
              const std::vector<std::uintptr_t>& addresses)
      : memory_(
            empty({std::int64_t(addresses.size())}, DType::float64, device)) {
    static_assert(sizeof(std::uintptr_t) == sizeof(double));
    backend_of(device).copy_to_device(device.index, memory_.raw_data(),
                                      addresses.data(),
                                      addresses.size() * sizeof(double));
  }
  void* from(std::size_t index) const {
    return static_cast<double*>(memory_.raw_data()) + index;
  }

 private:
  Tensor memory_;
};

// cuBLAS is column-major: it sees transposes, and target' = b' a'.
void multiply_group(const Cublas& blas, const Group& group, bool accumulate) {
  const Product& first = *group[0];
  const auto [m, n, k] = first.sizes();
  const auto multiply = [&](const void* b, const void* a, void* c) {
    blas.multiply(first.written.dtype(), {n, m, k},
                  {b, first.b.leading, first.b.transposed},
                  {a, first.a.leading, first.a.transposed},
                  {c, leading_of(first.written), accumulate},
                  int(group.size()));
  };
  if (group.size() == 1) {
    multiply(first.b.tensor.address(false), first.a.tensor.address(false),
             first.written.address(true));
    return;
  }
  std::vector<std::uintptr_t> addresses;
  const auto add = [&](const Tensor& tensor, bool written) {
    addresses.push_back(
        reinterpret_cast<std::uintptr_t>(tensor.address(written)));
  };
  for (const Product* each : group) add(each->b.tensor, false);
  for (const Product* each : group) add(each->a.tensor, false);
  for (const Product* each : group) add(each->written, true);
  const AddressesOn there(first.written.device(), addresses);
  multiply(there.from(0), there.from(group.size()),
           there.from(2 * group.size()));
}

void check_lists(std::span<const Tensor> targets, std::span<const Tensor> a,
                 std::span<const Tensor> b) {
  if (a.size() != targets.size() || b.size() != targets.size()) {
    throw Error(fmt::format(
        "matmul: {} results for lists of {} and {} matrices; expected as many",
        targets.size(), a.size(), b.size()));
  }
  for (std::size_t i = 0; i < targets.size(); ++i) {
    check_fit(targets[i], a[i], b[i]);
    check_alike(targets[0], targets[i]);
  }
}

}  // namespace

void matmul_into(const Tensor& target, const Tensor& a, const Tensor& b,
                 bool accumulate) {
  matmul_each_into({&target, 1}, {&a, 1}, {&b, 1}, accumulate);
}

void matmul_each_into(std::span<const Tensor> targets,
                      std::span<const Tensor> a, std::span<const Tensor> b,
                      bool accumulate) {
  check_lists(targets, a, b);
  if (targets.empty()) return;
  const Tensor& first = targets[0];
  const Cublas* const blas =
      is_reduced(first.dtype()) ? nullptr : cublas_for(first.device());
  const auto here = [&](const Tensor& tensor) {
    return blas != nullptr ? tensor : tensor.cpu();
  };
  std::vector<Product> products;
  products.reserve(targets.size());
  for (std::size_t i = 0; i < targets.size(); ++i) {
    products.push_back({operand_of(here(a[i])), operand_of(here(b[i])),
                        writable(here(targets[i]))});
  }
  if (blas != nullptr) {
    for (const Group& group : groups_of(products)) {
      multiply_group(*blas, group, accumulate);
    }
  } else {
    multiply_on_host(products, accumulate);
  }
  for (std::size_t i = 0; i < targets.size(); ++i) {
    const Tensor& written = products[i].written;
    if (written.impl() != targets[i].impl()) Tensor(targets[i]).copy_(written);
  }
}

}  // namespace fuse
