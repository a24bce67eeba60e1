#include "fusebook/device/matrix_means_on_host.h"

#include <algorithm>
#include <array>
#include <vector>

#include "fusebook/prelude/reductions.h"
#include "fusebook/runtime/parallel_for.h"

namespace fuse {
namespace {

// Less work than this is not worth another thread.
constexpr i64 least_elements = 32768;

// Adjacent elements, which vectors take.
template <class T>
struct DenseRow {
  const device::Unaligned<T>* values;
  int squares;

  FUSE_FN double operator()(i64 i) const {
    const double value = double(device::Memory<T>::load(values[i]));
    return squares != 0 ? value * value : value;
  }
};

// Adds elements to lanes and to the sums of their columns.
template <class Row>
double sum_chunk(const Row row, i64 begin, i64 end, double* columns) {
  std::array<double, reduction_lanes> lanes;
  const int used = device::used_lanes(end - begin);
  std::fill_n(lanes.data(), used, 0.0);
  for (i64 first = begin; first < end; first += reduction_lanes) {
    const int count = int(std::min<i64>(reduction_lanes, end - first));
    FUSE_INDEPENDENT
    for (int lane = 0; lane < count; ++lane) {
      const double term = row(first + lane);
      lanes[lane] += term;
      columns[first + lane] += term;
    }
  }
  return device::join_lanes(device::Sum(), lanes.data(), used);
}

template <class Row>
double sum_row(const Row row, i64 width, double* columns,
               std::vector<double>& chunks) {
  if (width <= reduction_chunk) return sum_chunk(row, 0, width, columns);
  chunks.clear();
  for (i64 begin = 0; begin < width; begin += reduction_chunk) {
    const i64 end = std::min(begin + reduction_chunk, width);
    chunks.push_back(sum_chunk(row, begin, end, columns));
  }
  return device::join_numbers(device::Sum(), chunks.data(), i64(chunks.size()));
}

template <class Row>
void add_row(const Row row, i64 width, double* columns) {
  FUSE_INDEPENDENT
  for (i64 i = 0; i < width; ++i) columns[i] += row(i);
}

// Of one thread.
struct Scratch {
  std::vector<double> columns;
  std::vector<double> chunks;
};

template <class T, class Row>
void take_row(const MatrixItem& item, i64 at, const Row row, Scratch& scratch) {
  if (item.rows == nullptr) {
    add_row(row, item.width, scratch.columns.data());
    return;
  }
  const double sum =
      sum_row(row, item.width, scratch.columns.data(), scratch.chunks);
  device::store_mean<T>(item.rows, at, sum, item.width);
}

template <class T>
void average_band(const MatrixWork& work, i64 number, Scratch& scratch) {
  const device::MatrixPart band = device::band_of(work, number);
  const MatrixItem& item = *band.item;
  scratch.columns.assign(std::size_t(item.width), 0.0);
  const i64 begin = band.number * band_rows;
  const i64 end = std::min(begin + band_rows, item.height);
  for (i64 row = begin; row < end; ++row) {
    const auto values = device::row_of<T>(work, band, row);
    const i64 at = band.matrix * item.height + row;
    if (values.stride == 1) {
      take_row<T>(item, at, DenseRow<T>{values.values, work.squares}, scratch);
    } else {
      take_row<T>(item, at, values, scratch);
    }
  }
  if (item.columns == nullptr) return;
  const double* const sums = scratch.columns.data();
  if (item.bands > 1) {
    std::copy_n(sums, item.width,
                work.numbers + item.first_number +
                    (band.matrix * item.bands + band.number) * item.width);
    return;
  }
  for (i64 column = 0; column < item.width; ++column) {
    device::store_mean<T>(item.columns, band.matrix * item.width + column,
                          sums[column], item.height);
  }
}

template <class T>
void join_block(const MatrixWork& work, i64 number) {
  const device::MatrixPart block = device::block_of(work, number);
  const i64 begin = block.number * column_block;
  const i64 end = std::min(begin + column_block, block.item->width);
  for (i64 column = begin; column < end; ++column) {
    device::join_bands<T>(work, block, column);
  }
}

i64 elements_of(const MatrixWork& work) {
  i64 elements = 0;
  for (i64 k = 0; k < work.count; ++k) {
    const MatrixItem& item = work.items[k];
    elements += item.matrices * item.height * item.width;
  }
  return elements;
}

template <class T>
void average(const MatrixWork& work) {
  if (work.bands == 0) return;
  const i64 a_band = std::max<i64>(1, elements_of(work) / work.bands);
  const i64 least = std::max<i64>(1, least_elements / a_band);
  parallel_for(work.bands, least, [&](i64 begin, i64 end) {
    static thread_local Scratch scratch;  // so that steps allocate nothing
    for (i64 k = begin; k < end; ++k) average_band<T>(work, k, scratch);
  });
  parallel_for(work.blocks, 1, [&](i64 begin, i64 end) {
    for (i64 k = begin; k < end; ++k) join_block<T>(work, k);
  });
}

}  // namespace

void average_on_host(const MatrixWork& work) {
  switch (work.dtype) {
    case 0:
      return average<float>(work);
    case 1:
      return average<double>(work);
    case 2:
      return average<device::f16>(work);
    case 3:
      return average<device::bf16>(work);
    default:
      return average<device::i16>(work);
  }
}

}  // namespace fuse
