// The kernels that average rows and columns on a GPU: a block of threads for each
// band of rows, then for each block of columns with several bands. They follow
// gpu_sums.h and matrix_means.h; the library never includes this, only its text.
#ifndef FUSEBOOK_GPU_MATRIX_MEANS_H
#define FUSEBOOK_GPU_MATRIX_MEANS_H

namespace fuse {
namespace FUSE_DEVICE {

// In all threads. The sum of chunk k waits in thread k % sum_lanes.
template <class Value>
FUSE_FN double sum_row(SumBlock& block, const Value value, i64 width) {
  if (width <= sum_chunk_size) return sum_in_lanes(block, value, 0, width);
  double own = 0;
  for (i64 k = 0; k * sum_chunk_size < width; ++k) {
    const i64 begin = k * sum_chunk_size;
    const i64 rest = width - begin;
    const i64 end = begin + (rest < sum_chunk_size ? rest : sum_chunk_size);
    const double sum = sum_in_lanes(block, value, begin, end);
    if (int(threadIdx.x) == int(k % sum_lanes)) own += sum;
  }
  return sum_in_lanes(block, [own](i64) { return own; }, 0, sum_lanes);
}

template <class T>
FUSE_FN void average_band(const MatrixWork& work, i64 number) {
  const MatrixPart band = band_of(work, number);
  const MatrixItem& item = *band.item;
  const i64 begin = band.number * band_rows;
  const i64 rest = item.height - begin;
  const i64 end = begin + (rest < band_rows ? rest : band_rows);
  SumBlock block;
  for (i64 row = begin; item.rows != nullptr && row < end; ++row) {
    const double sum = sum_row(block, row_of<T>(work, band, row), item.width);
    if (threadIdx.x == 0) {
      store_mean<T>(item.rows, band.matrix * item.height + row, sum,
                    item.width);
    }
  }
  if (item.columns == nullptr) return;
  for (i64 column = threadIdx.x; column < item.width; column += sum_lanes) {
    double sum = 0;
    for (i64 row = begin; row < end; ++row) {
      sum += row_of<T>(work, band, row)(column);
    }
    if (item.bands > 1) {
      work.numbers[item.first_number +
                   (band.matrix * item.bands + band.number) * item.width +
                   column] = sum;
    } else {
      store_mean<T>(item.columns, band.matrix * item.width + column, sum,
                    item.height);
    }
  }
}

template <class T>
FUSE_FN void join_block(const MatrixWork& work, i64 number) {
  const MatrixPart block = block_of(work, number);
  const i64 column = block.number * column_block + threadIdx.x;
  if (column < block.item->width) join_bands<T>(work, block, column);
}

}  // namespace FUSE_DEVICE
}  // namespace fuse

extern "C" __global__ void __launch_bounds__(256)
    average_bands(const __grid_constant__ fuse::MatrixWork work) {
  for (fuse::i64 k = blockIdx.x; k < work.bands; k += gridDim.x) {
    switch (work.dtype) {
      case 0:
        fuse::device::average_band<float>(work, k);
        break;
      case 1:
        fuse::device::average_band<double>(work, k);
        break;
      case 2:
        fuse::device::average_band<fuse::device::f16>(work, k);
        break;
      case 3:
        fuse::device::average_band<fuse::device::bf16>(work, k);
        break;
      default:
        fuse::device::average_band<fuse::device::i16>(work, k);
    }
  }
}

extern "C" __global__ void __launch_bounds__(256)
    join_columns(const __grid_constant__ fuse::MatrixWork work) {
  for (fuse::i64 k = blockIdx.x; k < work.blocks; k += gridDim.x) {
    switch (work.dtype) {
      case 0:
        fuse::device::join_block<float>(work, k);
        break;
      case 1:
        fuse::device::join_block<double>(work, k);
        break;
      case 2:
        fuse::device::join_block<fuse::device::f16>(work, k);
        break;
      case 3:
        fuse::device::join_block<fuse::device::bf16>(work, k);
        break;
      default:
        fuse::device::join_block<fuse::device::i16>(work, k);
    }
  }
}

#endif  // FUSEBOOK_GPU_MATRIX_MEANS_H
