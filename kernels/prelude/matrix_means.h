// What it takes to average the rows and columns of matrices, and in which order
// their elements are added. The library includes this for the CPU, and its text
// is part of the kernel for GPUs (gpu_matrix_means.h).
//
// A row is summed like a tensor of its own, in the order of sums.h. Of columns,
// rows are taken in bands of `band_rows`; a band adds its rows in order, from 0,
// and the sums of the bands are added in order. All of it is in float64; the
// mean is rounded once, to the dtype of the elements.
#ifndef FUSEBOOK_MATRIX_MEANS_H
#define FUSEBOOK_MATRIX_MEANS_H

#ifndef FUSEBOOK_SUMS_H  // a kernel has no files to include
#include "fusebook/prelude/sums.h"
#endif

namespace fuse {

constexpr i64 band_rows = 64;
constexpr i64 column_block = 256;

// Matrices of one shape at equal distances, as one tensor has them. Distances
// are in elements; results lie one behind the other.
struct MatrixItem {
  const void* values;
  void* rows;     // the mean of each row; null if not wanted
  void* columns;  // the mean of each column; null if not wanted
  i64 matrices;
  i64 height;
  i64 width;
  i64 matrix_stride;
  i64 row_stride;
  i64 column_stride;
  i64 bands;         // of one matrix, at least 1
  i64 first_band;    // among the bands of all items
  i64 first_block;   // among the blocks of columns of all items
  i64 first_number;  // of its sums, a line of `width` for each band
};

// Means of elements, or of their squares. `dtype` is the number of a DType; all
// addresses are in the memory of the device that works.
struct MatrixWork {
  const MatrixItem* items;
  i64 count;
  i64 bands;
  i64 blocks;       // of columns with several bands
  double* numbers;  // sums of bands, where a matrix has several
  int dtype;
  int squares;
};

namespace FUSE_DEVICE {

// A band of rows of one matrix, or with several bands a block of its columns.
struct MatrixPart {
  const MatrixItem* item;
  i64 matrix;
  i64 number;
};

// The last item whose first part is not behind this one.
template <class First>
FUSE_FN const MatrixItem* item_of(const MatrixWork& work, i64 part,
                                  First first) {
  i64 begin = 0;
  i64 end = work.count;
  while (end - begin > 1) {
    const i64 middle = begin + (end - begin) / 2;
    if (first(work.items[middle]) <= part) {
      begin = middle;
    } else {
      end = middle;
    }
  }
  return work.items + begin;
}

FUSE_FN MatrixPart band_of(const MatrixWork& work, i64 band) {
  const MatrixItem* const item = item_of(
      work, band, [](const MatrixItem& each) { return each.first_band; });
  const i64 own = band - item->first_band;
  return {item, own / item->bands, own % item->bands};
}

FUSE_FN i64 blocks_in(const MatrixItem& item) {
  return (item.width + column_block - 1) / column_block;
}

FUSE_FN MatrixPart block_of(const MatrixWork& work, i64 block) {
  const MatrixItem* const item = item_of(
      work, block, [](const MatrixItem& each) { return each.first_block; });
  const i64 own = block - item->first_block;
  return {item, own / blocks_in(*item), own % blocks_in(*item)};
}

template <class T>
struct MatrixRow {
  const Unaligned<T>* values;
  i64 stride;
  int squares;

  FUSE_FN double operator()(i64 i) const {
    const double value = double(Memory<T>::load(values[i * stride]));
    return squares != 0 ? value * value : value;
  }
};

template <class T>
FUSE_FN MatrixRow<T> row_of(const MatrixWork& work, const MatrixPart& part,
                            i64 row) {
  const MatrixItem& item = *part.item;
  return {static_cast<const Unaligned<T>*>(item.values) +
              part.matrix * item.matrix_stride + row * item.row_stride,
          item.column_stride, work.squares};
}

template <class T>
FUSE_FN void store_mean(void* means, i64 at, double sum, i64 count) {
  static_cast<Unaligned<T>*>(means)[at] = Memory<T>::store(sum / double(count));
}

// Joins the bands of one column, and stores its mean.
template <class T>
FUSE_FN void join_bands(const MatrixWork& work, const MatrixPart& part,
                        i64 column) {
  const MatrixItem& item = *part.item;
  const double* const sums = work.numbers + item.first_number +
                             part.matrix * item.bands * item.width + column;
  double sum = sums[0];
  for (i64 band = 1; band < item.bands; ++band) {
    sum += sums[band * item.width];
  }
  store_mean<T>(item.columns, part.matrix * item.width + column, sum,
                item.height);
}

}  // namespace FUSE_DEVICE
}  // namespace fuse

#endif  // FUSEBOOK_MATRIX_MEANS_H
