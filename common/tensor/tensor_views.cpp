#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <vector>

#include "fusebook/support/error.h"
#include "fusebook/tensor/autograd.h"
#include "fusebook/tensor/tensor.h"
#include "fusebook/tensor/tensor_layout.h"

namespace fuse {
namespace {

// Errors of views name the function and the tensor.
[[noreturn]] void refuse(const char* function, const Tensor& tensor,
                         const std::string& what) {
  throw Error(std::string(function) + ": " + what + " (the tensor has shape " +
              to_string(tensor.shape()) + ")");
}

// A dimension, which may be negative to count from the end.
std::size_t dimension(const char* function, const Tensor& tensor,
                      std::int64_t dim) {
  const std::int64_t rank = tensor.dim();
  if (dim >= -rank && dim < rank) {
    return std::size_t(dim < 0 ? dim + rank : dim);
  }
  const std::string range = rank == 0
                                ? "there are none"
                                : fmt::format("use {} to {}", -rank, rank - 1);
  refuse(function, tensor,
         fmt::format("dimension {} is out of range; {}", dim, range));
}

std::int64_t product(const Shape& shape) {
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return 0;
  std::int64_t numel = 1;
  for (const std::int64_t size : shape) {
    if (__builtin_mul_overflow(numel, size, &numel)) {
      throw Error("invalid shape " + to_string(shape) +
                  ": the number of elements exceeds 64 bits");
    }
  }
  return numel;
}

// The same memory with another layout, starting at an element.
Tensor make_view(const Tensor& base, std::int64_t first, Shape shape,
                 Shape strides) {
  const bool other_order = strides != row_major_strides(shape);
  if (first != 0 || other_order || product(shape) != base.numel()) {
    check_numbers("a view of some elements, or in another order,",
                  base.dtype());
  }
  auto impl = std::make_shared<TensorImpl>();
  impl->storage = base.impl()->storage;
  impl->dtype = base.dtype();
  impl->data = static_cast<char*>(base.raw_data()) +
               first * std::int64_t(size_of(base.dtype()));
  impl->numel = product(shape);
  impl->shape = std::move(shape);
  set_strides(*impl, std::move(strides));
  return Tensor(std::move(impl));
}

Tensor same_view(const Tensor& base) {
  const Tensor view = make_view(base, 0, base.shape(), base.strides());
  return with_grad(view, {base},
                   [](const Tensor& grad) -> Grads { return {grad}; });
}

// The gradient of an expanded tensor: the sum over its copies, accumulated in
// float64 in the order of the elements.
Tensor sum_to(const Tensor& grad, const Shape& shape) {
  const std::size_t fresh = grad.shape().size() - shape.size();
  const Tensor sums = zeros(shape, DType::float64, cpu_device);
  Shape steps(grad.shape().size(), 0);
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == grad.shape()[d + fresh])
      steps[d + fresh] = sums.strides()[d];
  }
  const std::vector<double> values = grad.to_vector();
  double* const to = Tensor(sums).data<double>();
  Shape at(steps.size(), 0);
  std::int64_t place = 0;
  for (const double value : values) {
    to[place] += value;
    for (std::size_t d = at.size(); d-- > 0;) {
      place += steps[d];
      if (++at[d] < grad.shape()[d]) break;
      place -= at[d] * steps[d];
      at[d] = 0;
    }
  }
  return sums.to(grad.dtype()).to(grad.device());
}

// Its backward applies `again`: the gradient goes into the same view of zeros.
template <class View>
Tensor leading_back(const Tensor& view, const Tensor& base, const View& again) {
  if (!wants_grad(base)) return view;
  return with_grad(view, {base},
                   [again, shape = base.shape(), dtype = base.dtype(),
                    device = base.device()](const Tensor& grad) -> Grads {
                     const Tensor whole = zeros(shape, dtype, device);
                     again(whole).copy_(grad);
                     return {whole};
                   });
}

// Every `step`th of `length` elements of a dimension.
Tensor part(const Tensor& base, std::size_t dim, std::int64_t start,
            std::int64_t length, std::int64_t step) {
  Shape shape = base.shape();
  Shape strides = base.strides();
  const std::int64_t first = length > 0 ? start * strides[dim] : 0;
  shape[dim] = length;
  strides[dim] *= step;
  const Tensor view =
      make_view(base, first, std::move(shape), std::move(strides));
  return leading_back(view, base, [=](const Tensor& whole) {
    return part(whole, dim, start, length, step);
  });
}

// Resolves -1 in the shape of a view.
Shape resolve(const Tensor& tensor, const Shape& shape) {
  Shape resolved = shape;
  std::int64_t known = 1;
  std::int64_t* open = nullptr;
  for (std::int64_t& size : resolved) {
    if (size == -1 && open == nullptr) {
      open = &size;
    } else if (size < 0) {
      refuse("view", tensor,
             "invalid shape " + to_string(shape) +
                 ": sizes must not be negative, except for a single -1");
    } else if (size > 0 && known > (std::int64_t(1) << 62) / size) {
      known = -1;
      break;
    } else {
      known *= size;
    }
  }
  const bool fits = open == nullptr ? known == tensor.numel()
                                    : known > 0 && tensor.numel() % known == 0;
  if (!fits) {
    refuse("view", tensor,
           fmt::format("shape {} does not hold the {} elements",
                       to_string(shape), tensor.numel()));
  }
  if (open != nullptr) *open = tensor.numel() / known;
  return resolved;
}

}  // namespace

Tensor Tensor::transpose(std::int64_t dim0, std::int64_t dim1) const {
  check_defined(*this);
  if (dim() == 0 && (dim0 == 0 || dim0 == -1) && (dim1 == 0 || dim1 == -1)) {
    return same_view(*this);
  }
  const std::size_t a = dimension("transpose", *this, dim0);
  const std::size_t b = dimension("transpose", *this, dim1);
  Shape sizes = shape();
  Shape steps = strides();
  std::swap(sizes[a], sizes[b]);
  std::swap(steps[a], steps[b]);
  const Tensor view = make_view(*this, 0, std::move(sizes), std::move(steps));
  return with_grad(view, {*this}, [dim0, dim1](const Tensor& grad) -> Grads {
    return {grad.transpose(dim0, dim1)};
  });
}

Tensor Tensor::t() const {
  check_defined(*this);
  if (dim() > 2) refuse("t", *this, "expected at most 2 dimensions");
  return dim() == 2 ? transpose(0, 1) : same_view(*this);
}

Tensor Tensor::permute(const Shape& dims) const {
  check_defined(*this);
  if (dims.size() != shape().size()) {
    refuse("permute", *this,
           to_string(dims) + " does not name each dimension once");
  }
  Shape sizes;
  Shape steps;
  Shape back(dims.size());
  std::vector<bool> taken(dims.size());
  for (const std::int64_t dim : dims) {
    const std::size_t d = dimension("permute", *this, dim);
    if (taken[d]) {
      refuse("permute", *this,
             to_string(dims) + " does not name each dimension once");
    }
    taken[d] = true;
    back[d] = std::int64_t(sizes.size());
    sizes.push_back(shape()[d]);
    steps.push_back(strides()[d]);
  }
  const Tensor view = make_view(*this, 0, std::move(sizes), std::move(steps));
  return with_grad(view, {*this}, [back](const Tensor& grad) -> Grads {
    return {grad.permute(back)};
  });
}

Tensor Tensor::narrow(std::int64_t dim, std::int64_t start,
                      std::int64_t length) const {
  check_defined(*this);
  const std::size_t d = dimension("narrow", *this, dim);
  const std::int64_t size = shape()[d];
  const bool inside = start >= -size && start <= size;
  const std::int64_t first = inside && start < 0 ? start + size : start;
  if (!inside || length < 0 || length > size - first) {
    refuse(
        "narrow", *this,
        fmt::format("{} elements from index {} on do not fit into dimension {}",
                    length, start, d));
  }
  return part(*this, d, first, length, 1);
}

Tensor Tensor::select(std::int64_t dim, std::int64_t index) const {
  check_defined(*this);
  const std::size_t d = dimension("select", *this, dim);
  const std::int64_t size = shape()[d];
  if (index < -size || index >= size) {
    refuse("select", *this,
           fmt::format("index {} is out of range for dimension {}", index, d));
  }
  Shape sizes = shape();
  Shape steps = strides();
  const std::int64_t first = (index < 0 ? index + size : index) * steps[d];
  sizes.erase(sizes.begin() + std::ptrdiff_t(d));
  steps.erase(steps.begin() + std::ptrdiff_t(d));
  const Tensor view =
      make_view(*this, first, std::move(sizes), std::move(steps));
  return leading_back(view, *this, [dim, index](const Tensor& whole) {
    return whole.select(dim, index);
  });
}

Tensor Tensor::slice(std::int64_t dim, std::int64_t start, std::int64_t end,
                     std::int64_t step) const {
  check_defined(*this);
  const std::size_t d = dimension("slice", *this, dim);
  if (step < 1) {
    refuse("slice", *this,
           fmt::format("the step must be positive, not {}", step));
  }
  const std::int64_t size = shape()[d];
  const auto place = [&](std::int64_t index) {
    return std::clamp<std::int64_t>(index < 0 ? index + size : index, 0, size);
  };
  const std::int64_t first = place(start);
  const std::int64_t span = std::max<std::int64_t>(place(end) - first, 0);
  // Any step past the end gives the same result; clamping avoids overflow.
  const std::int64_t reach = std::min(step, std::max<std::int64_t>(size, 1));
  return part(*this, d, first, span / reach + (span % reach != 0 ? 1 : 0),
              reach);
}

Tensor Tensor::view(const Shape& shape) const {
  check_defined(*this);
  if (!is_contiguous()) {
    refuse("view", *this,
           "strides " + to_string(strides()) +
               " do not allow another shape; call contiguous() first, which "
               "copies the elements");
  }
  Shape resolved = resolve(*this, shape);
  Shape strides = row_major_strides(resolved);
  const Tensor view =
      make_view(*this, 0, std::move(resolved), std::move(strides));
  return with_grad(view, {*this},
                   [before = this->shape()](const Tensor& grad) -> Grads {
                     return {grad.contiguous().view(before)};
                   });
}

Tensor Tensor::expand(const Shape& sizes) const {
  check_defined(*this);
  const std::size_t rank = shape().size();
  if (sizes.size() < rank) {
    refuse("expand", *this, to_string(sizes) + " has too few dimensions");
  }
  const std::size_t fresh = sizes.size() - rank;
  Shape expanded = sizes;
  Shape steps(sizes.size(), 0);
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    if (d >= fresh && sizes[d] == -1) expanded[d] = shape()[d - fresh];
    if (expanded[d] < 0) {
      refuse("expand", *this, to_string(sizes) + " has a negative size");
    }
    if (d < fresh) continue;
    if (expanded[d] == shape()[d - fresh]) {
      steps[d] = strides()[d - fresh];
    } else if (shape()[d - fresh] != 1) {
      refuse("expand", *this,
             to_string(sizes) + " changes a size other than 1");
    }
  }
  const Tensor view =
      make_view(*this, 0, std::move(expanded), std::move(steps));
  return with_grad(view, {*this},
                   [before = shape()](const Tensor& grad) -> Grads {
                     return {sum_to(grad, before)};
                   });
}

}  // namespace fuse
