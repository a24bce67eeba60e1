#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "fusebook/ops/element.h"
#include "fusebook/support/error.h"
#include "fusebook/tensor/tensor.h"

namespace fuse {
namespace {

constexpr std::int64_t summary_threshold = 1000;
constexpr std::int64_t edge_items = 3;
constexpr std::size_t line_width = 80;
constexpr std::size_t prefix_width = 7;  // "tensor("

std::string number_text(const char* format, double value) {
  // C prints the sign of a NaN; Python does not.
  if (std::isnan(value)) return "nan";
  std::array<char, 352> text{};
  std::snprintf(text.data(), text.size(), format, value);
  return text.data();
}

/// One number format for a whole tensor, chosen like torch's: integers end in a
/// point, a wide range uses exponents, and everything else gets four decimals.
class NumberFormat {
 public:
  explicit NumberFormat(const std::vector<double>& values);
  std::string operator()(double value) const;
  std::size_t width() const { return width_; }

 private:
  std::string unpadded(double value) const;

  bool whole_ = true;
  bool exponent_ = false;
  std::size_t width_ = 1;
};

NumberFormat::NumberFormat(const std::vector<double>& values) {
  double smallest = HUGE_VAL;
  double largest = 0;
  for (const double value : values) {
    if (value == 0 || !std::isfinite(value)) continue;
    smallest = std::min(smallest, std::abs(value));
    largest = std::max(largest, std::abs(value));
    whole_ = whole_ && value == std::ceil(value);
  }
  if (largest == 0) return;
  exponent_ = largest / smallest > 1000.0 || largest > 1e8 ||
              (!whole_ && smallest < 1e-4);
  for (const double value : values) {
    if (value == 0 || !std::isfinite(value)) continue;
    width_ = std::max(width_, unpadded(value).size());
  }
}

std::string NumberFormat::unpadded(double value) const {
  if (exponent_) return number_text("%.4e", value);
  if (!whole_) return number_text("%.4f", value);
  return fmt::format("{}{}", number_text("%.0f", value),
                     std::isfinite(value) ? "." : "");
}

std::string NumberFormat::operator()(double value) const {
  const std::string text = unpadded(value);
  return std::string(width_ - std::min(width_, text.size()), ' ') + text;
}

/// Writes nested brackets around the numbers of one tensor.
class TensorWriter {
 public:
  explicit TensorWriter(const Tensor& tensor)
      : shape_(tensor.shape()),
        values_(tensor.to_vector()),
        summarize_(tensor.numel() > summary_threshold),
        format_(shown_values()) {}

  std::string text() const {
    return shape_.empty() ? format_(values_[0]) : block(0, 0, prefix_width);
  }

 private:
  std::vector<std::int64_t> shown_indices(std::size_t axis) const;
  void collect(std::size_t axis, std::int64_t first,
               std::vector<double>& shown) const;
  std::vector<double> shown_values() const;
  std::int64_t stride(std::size_t axis) const;
  std::string block(std::size_t axis, std::int64_t first,
                    std::size_t indent) const;
  std::string row(std::int64_t first, std::size_t indent) const;

  const Shape& shape_;
  std::vector<double> values_;
  bool summarize_;
  NumberFormat format_;
};

/// Indices printed along an axis; -1 stands for the ellipsis.
std::vector<std::int64_t> TensorWriter::shown_indices(std::size_t axis) const {
  const std::int64_t size = shape_[axis];
  const bool cut = summarize_ && size > 2 * edge_items;
  std::vector<std::int64_t> indices;
  for (std::int64_t i = 0; i < size; ++i) {
    if (cut && i == edge_items) {
      indices.push_back(-1);
      i = size - edge_items;
    }
    indices.push_back(i);
  }
  return indices;
}

std::int64_t TensorWriter::stride(std::size_t axis) const {
  std::int64_t stride = 1;
  for (std::size_t i = axis + 1; i < shape_.size(); ++i) stride *= shape_[i];
  return stride;
}

void TensorWriter::collect(std::size_t axis, std::int64_t first,
                           std::vector<double>& shown) const {
  if (axis == shape_.size()) {
    shown.push_back(values_[first]);
    return;
  }
  for (const std::int64_t index : shown_indices(axis)) {
    if (index >= 0) collect(axis + 1, first + index * stride(axis), shown);
  }
}

std::vector<double> TensorWriter::shown_values() const {
  std::vector<double> shown;
  collect(0, 0, shown);
  return shown;
}

std::string TensorWriter::row(std::int64_t first, std::size_t indent) const {
  const std::size_t room = line_width > indent ? line_width - indent : 0;
  const std::size_t per_line =
      std::max<std::size_t>(1, room / (format_.width() + 2));
  std::string text = "[";
  std::size_t count = 0;
  for (const std::int64_t index : shown_indices(shape_.size() - 1)) {
    if (count > 0 && count % per_line == 0) {
      text.append(",\n").append(indent + 1, ' ');
    } else if (count > 0) {
      text += ", ";
    }
    text += index < 0 ? " ..." : format_(values_[first + index]);
    ++count;
  }
  return text + "]";
}

std::string TensorWriter::block(std::size_t axis, std::int64_t first,
                                std::size_t indent) const {
  if (axis + 1 == shape_.size()) return row(first, indent);
  std::string separator = ",";
  separator.append(shape_.size() - axis - 1, '\n').append(indent + 1, ' ');
  std::string text = "[";
  for (const std::int64_t index : shown_indices(axis)) {
    if (text.size() > 1) text += separator;
    text += index < 0
                ? "..."
                : block(axis + 1, first + index * stride(axis), indent + 1);
  }
  return text + "]";
}

std::string with_suffixes(std::string text,
                          const std::vector<std::string>& suffixes) {
  const std::size_t last_line = text.rfind('\n');
  std::size_t length = last_line == std::string::npos
                           ? text.size() + 2
                           : text.size() - last_line + 1;
  for (const std::string& suffix : suffixes) {
    if (length + suffix.size() + 2 > line_width) {
      text.append(",\n").append(prefix_width, ' ').append(suffix);
      length = prefix_width + suffix.size();
    } else {
      text += ", " + suffix;
      length += suffix.size() + 2;
    }
  }
  return text + ")";
}

void check_comparable(const Tensor& a, const Tensor& b) {
  if (a.shape() == b.shape() && a.dtype() == b.dtype()) return;
  throw Error(
      fmt::format("allclose: a tensor of shape {} and {} cannot be compared "
                  "with one of shape {} and {}",
                  to_string(a.shape()), name_of(a.dtype()),
                  to_string(b.shape()), name_of(b.dtype())));
}

bool same_bits(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}

// The same codes and scales.
bool same_blocks(const Tensor& a, const Tensor& b) {
  return std::memcmp(a.address(false), b.address(false), a.nbytes()) == 0;
}

bool is_close(double a, double b, double rtol, double atol) {
  if (a == b) return true;
  if (!std::isfinite(a) || !std::isfinite(b)) return false;
  return std::abs(a - b) <= atol + rtol * std::abs(b);
}

}  // namespace

std::string to_string(const Shape& shape) {
  std::string text = "[";
  for (const std::int64_t size : shape) {
    if (text.size() > 1) text += ", ";
    text += std::to_string(size);
  }
  return text + "]";
}

std::string to_string(const Tensor& tensor) {
  if (!tensor.defined()) return "tensor(undefined)";
  std::vector<std::string> suffixes;
  const bool is_empty = tensor.numel() == 0;
  if (is_empty && tensor.dim() != 1) {
    std::string size = to_string(tensor.shape());
    size.front() = '(';
    size.back() = ')';
    suffixes.push_back("size=" + size);
  }
  if (tensor.dtype() != DType::float32) {
    suffixes.push_back(std::string("dtype=") + name_of(tensor.dtype()));
  }
  const std::string body = is_empty ? "[]" : TensorWriter(tensor).text();
  return with_suffixes("tensor(" + body, suffixes);
}

bool bitwise_equal(const Tensor& a, const Tensor& b) {
  check_defined(a, "the first tensor");
  check_defined(b, "the second tensor");
  if (a.shape() != b.shape() || a.dtype() != b.dtype()) return false;
  if (in_blocks(a.dtype())) return same_blocks(a.cpu(), b.cpu());
  const std::vector<double> left = a.to_vector();
  const std::vector<double> right = b.to_vector();
  return std::equal(left.begin(), left.end(), right.begin(), same_bits);
}

bool bitwise_equal(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  return a.size() == b.size() &&
         std::equal(a.begin(), a.end(), b.begin(),
                    [](const Tensor& left, const Tensor& right) {
                      return bitwise_equal(left, right);
                    });
}

bool allclose(const Tensor& a, const Tensor& b, double rtol, double atol) {
  check_defined(a, "the first tensor");
  check_defined(b, "the second tensor");
  check_comparable(a, b);
  const std::vector<double> left = a.to_vector();
  const std::vector<double> right = b.to_vector();
  for (std::size_t i = 0; i < left.size(); ++i) {
    if (!is_close(left[i], right[i], rtol, atol)) return false;
  }
  return true;
}

}  // namespace fuse
