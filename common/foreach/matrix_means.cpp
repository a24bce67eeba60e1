#include "fusebook/foreach/matrix_means.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <utility>

#include "fusebook/device/backend.h"
#include "fusebook/reports/counters.h"
#include "fusebook/support/call_place.h"
#include "fusebook/support/error.h"
#include "fusebook/support/source_place.h"
#include "fusebook/tensor/list_registry.h"
#include "fusebook/trace/operands.h"
#include "fusebook/trace/recorder.h"

namespace fuse {
namespace {

// The dtype numbers used by sums.h.
static_assert(int(DType::float32) == 0 && int(DType::float64) == 1 &&
              int(DType::float16) == 2 && int(DType::bfloat16) == 3 &&
              int(DType::int16) == 4);

std::string call(std::source_location place) {
  return fmt::format("MatrixMeans at {}", at(CallPlace::or_else(place)));
}

void check_list(const TensorList& list, std::source_location place) {
  if (!list.defined()) throw Error(call(place) + ": the list was moved from");
  const ListImpl& impl = *list.impl();
  if (impl.rate != Rate::element || in_blocks(impl.dtype)) {
    throw Error(
        call(place) +
        " takes a list of tensors, not of per-tensor numbers or blocks");
  }
  for (const Tensor& each : shapes_of(impl).models()) {
    if (each.dim() >= 2) continue;
    throw Error(call(place) + ": a tensor has shape " +
                to_string(each.shape()) +
                "; rows and columns take two "
                "dimensions");
  }
}

// As torch keeps a dimension that it reduces.
TensorList results_for(const TensorList& like, std::size_t from_last,
                       const char* label) {
  std::vector<Tensor> results;
  for (const Tensor& each : shapes_of(*like.impl()).models()) {
    Shape shape = each.shape();
    shape[shape.size() - from_last] = 1;
    results.push_back(empty(shape, like.impl()->dtype, each.device()));
  }
  return {std::move(results), label};
}

// Bytes before each result, of a tensor that begins here.
void* behind(const TensorList& results, std::size_t index, std::int64_t count) {
  if (results.empty()) return nullptr;
  const ListImpl& list = *results.impl();
  return static_cast<char*>(list.addresses[index]) +
         std::size_t(count) * size_of(list.dtype);
}

// True if the stride of the last of the dimensions before the last two leads
// through all of them.
bool is_one_run(const Tensor& tensor, std::size_t outer) {
  for (std::size_t k = 0; k + 1 < outer; ++k) {
    const std::int64_t inner = tensor.shape()[k + 1] * tensor.strides()[k + 1];
    if (tensor.strides()[k] != inner) return false;
  }
  return true;
}

}  // namespace

MatrixMeans::MatrixMeans(const TensorList& like, Which which,
                         std::source_location place)
    : which_(which) {
  check_list(like, place);
  const ListImpl& shapes = shapes_of(*like.impl());
  device_ = shapes.device;
  dtype_ = like.impl()->dtype;
  shape_hash_ = shapes.shape_hash;
  if (which.rows) rows_ = results_for(like, 1, "row_means");
  if (which.columns) columns_ = results_for(like, 2, "column_means");
}

void MatrixMeans::take(const TensorList& list, bool squares,
                       std::source_location place) {
  if (!rows_.defined()) {
    throw Error(call(place) + ": these means were moved from");
  }
  check_list(list, place);
  const ListImpl& shapes = shapes_of(*list.impl());
  if (shapes.shape_hash != shape_hash_ || list.impl()->dtype != dtype_ ||
      (shapes.count > 0 && shapes.device != device_)) {
    throw Error(call(place) +
                ": the list has other shapes, another dtype or another device "
                "than the one that these means are for");
  }
  // What was recorded before runs first, also where it writes into the list.
  for (const Tensor& each : list.tensors()) {
    static_cast<void>(each.address(false));
  }
  use_results();
  if (placed_ == 0 || placed_ != list.impl()->content_hash) place_items(list);
  if (work_.bands == 0) return;
  work_.squares = squares ? 1 : 0;
  const int launches =
      backend_of(device_).average_matrices(device_.index, work_);
  if (const Recorder* const recorder = Recorder::current()) {
    recorder->count_outside("means of rows and columns", launches, bytes_);
  } else {
    add_to_process({.launches = launches, .bytes_moved = bytes_});
  }
}

// Says that they are written; what reads them has run before.
void MatrixMeans::use_results() const {
  for (const TensorList* const results : {&rows_, &columns_}) {
    for (const Tensor& each : *results) {
      static_cast<void>(each.address(true));
    }
  }
}

// Only lists in other places come here again.
void MatrixMeans::make_room(Tensor& memory, std::int64_t numbers) const {
  if (memory.defined() && memory.numel() == numbers) return;
  memory = empty({numbers}, DType::float64, device_);
}

void MatrixMeans::place_items(const TensorList& list) {
  items_.clear();
  work_ = {};
  work_.dtype = int(dtype_);
  sums_ = 0;
  bytes_ = 0;
  for (std::size_t i = 0; i < list.size(); ++i) {
    std::int64_t done = 0;
    add_matrices(list[i], i, done);
  }
  work_.count = std::int64_t(items_.size());
  make_room(numbers_, sums_);
  work_.numbers = static_cast<double*>(numbers_.raw_data());
  work_.items = items_.data();
  const DeviceBackend& backend = backend_of(device_);
  if (!backend.is_host()) {
    const std::size_t bytes = items_.size() * sizeof(MatrixItem);
    make_room(on_device_, std::int64_t(bytes / sizeof(double)));
    backend_of(device_).copy_to_device(device_.index, on_device_.raw_data(),
                                       items_.data(), bytes);
    work_.items = static_cast<const MatrixItem*>(on_device_.raw_data());
  }
  placed_ = list.impl()->content_hash;
}

// One item if one distance leads through all matrices of the tensor, else one
// for each index of its first dimension. `done` of them came before.
void MatrixMeans::add_matrices(const Tensor& tensor, std::size_t index,
                               std::int64_t& done) {
  const auto outer = std::size_t(tensor.dim()) - 2;
  if (!is_one_run(tensor, outer)) {
    for (std::int64_t k = 0; k < tensor.shape()[0]; ++k) {
      add_matrices(tensor.select(0, k), index, done);
    }
    return;
  }
  MatrixItem item{};
  item.matrices = 1;
  for (std::size_t k = 0; k < outer; ++k) item.matrices *= tensor.shape()[k];
  item.height = tensor.shape()[outer];
  item.width = tensor.shape()[outer + 1];
  item.matrix_stride = outer > 0 ? tensor.strides()[outer - 1] : 0;
  item.row_stride = tensor.strides()[outer];
  item.column_stride = tensor.strides()[outer + 1];
  item.values = tensor.raw_data();
  item.rows = behind(rows_, index, done * item.height);
  item.columns = behind(columns_, index, done * item.width);
  done += item.matrices;
  add_item(item);
}

void MatrixMeans::add_item(MatrixItem item) {
  item.bands =
      std::max<std::int64_t>(1, (item.height + band_rows - 1) / band_rows);
  item.first_band = work_.bands;
  item.first_block = work_.blocks;
  item.first_number = sums_;
  work_.bands += item.matrices * item.bands;
  if (item.bands > 1 && item.columns != nullptr) {
    const std::int64_t blocks = (item.width + column_block - 1) / column_block;
    work_.blocks += item.matrices * blocks;
    sums_ += item.matrices * item.bands * item.width;
  }
  const auto size = std::int64_t(size_of(dtype_));
  const std::int64_t results = (item.rows != nullptr ? item.height : 0) +
                               (item.columns != nullptr ? item.width : 0);
  bytes_ += item.matrices * (item.height * item.width + results) * size;
  items_.push_back(item);
}

}  // namespace fuse
