#pragma once

#include <cstddef>
#include <cstdint>
#include <source_location>
#include <vector>

#include "fusebook/prelude/matrix_means.h"
#include "fusebook/tensor/tensor_list.h"

namespace fuse {

/// Means along the last two dimensions of the tensors of a list, which are
/// matrices [..., height, width], for lists of given shapes: memory for the
/// results is taken once, so that kernels find them at the same place each time.
///
/// Means are no part of a recording. Taking them is a launch of its own (on a
/// GPU two, if a matrix has more than 64 rows), which reads every element once;
/// inside `compile`, what they depend on runs first, which is a graph break if
/// it was recorded before. The order of prelude/matrix_means.h makes the bits the
/// same on every device and for any number of threads.
class MatrixMeans {
 public:
  /// Which means are wanted.
  struct Which {
    bool rows = true;     ///< Of each row.
    bool columns = true;  ///< Of each column.
  };

  /// For lists with the shapes, dtype and device of this one. Throws Error for
  /// tensors of fewer than two dimensions and for a list of per-tensor numbers.
  MatrixMeans(const TensorList& like, Which which,
              std::source_location place = std::source_location::current());

  /// Takes the means of the rows and columns of such a list, or of the squares
  /// of their elements. Throws Error for other shapes, dtypes or devices.
  void take(const TensorList& list, bool squares = false,
            std::source_location place = std::source_location::current());

  /// The mean of each row, [..., height, 1]; empty if not wanted.
  const TensorList& rows() const { return rows_; }
  /// The mean of each column, [..., 1, width]; empty if not wanted.
  const TensorList& columns() const { return columns_; }

 private:
  void add_matrices(const Tensor& tensor, std::size_t index,
                    std::int64_t& done);
  void add_item(MatrixItem item);
  void place_items(const TensorList& list);
  void make_room(Tensor& memory, std::int64_t numbers) const;
  void use_results() const;

  Which which_;
  Device device_;
  DType dtype_;
  std::uint64_t shape_hash_;
  TensorList rows_;
  TensorList columns_;
  std::uint64_t placed_ = 0;  // content of the list that the items are of
  std::vector<MatrixItem> items_;
  MatrixWork work_{};
  std::int64_t sums_ = 0;  // numbers that the bands need
  std::int64_t bytes_ = 0;
  Tensor on_device_;  // the items
  Tensor numbers_;
};

}  // namespace fuse
