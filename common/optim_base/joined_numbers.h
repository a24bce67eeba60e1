#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "fusebook/optim_base/param_group.h"
#include "fusebook/trace/column_reads.h"
#include "fusebook/trace/number_changes.h"
#include "fusebook/trace/scalar.h"

namespace fuse {

/// The hyper-parameters of groups that are updated together, one Scalar for
/// each. Only those that report a change, and the memory of tensors, are read
/// again.
class JoinedNumbers {
 public:
  /// What has changed since the last `take`.
  enum class Change {
    none,   ///< nothing, or values that no update has read
    asked,  ///< something an update has read may have changed
    kinds,  ///< a number became a tensor, a tensor a number, or another tensor
  };

  JoinedNumbers() = default;
  /// For these groups, all of one kind (see `kind_of`), which must stay at
  /// their addresses. They report changes to the NumberChanges shared by all
  /// groups of an optimizer.
  JoinedNumbers(std::span<ParamGroup* const> groups,
                std::shared_ptr<const TensorGroups> places,
                std::shared_ptr<NumberChanges> changes);

  /// Takes the current numbers, and tells them which groups they belong to.
  Change take();
  /// Sets which of them an update has read.
  void set_reads(const std::vector<ColumnReads::Read>& reads);
  std::span<const Scalar> scalars() const { return scalars_; }
  /// Maps each tensor of the batch to its group.
  const TensorGroups& places() const { return *places_; }
  /// True if a tensor that a number is read from overlaps this memory.
  template <class Touches>
  bool any_tensor(Touches touches) const {
    for (const Column& column : columns_) {
      for (const Tensor& tensor : column.tensors) {
        if (touches(*tensor.impl())) return true;
      }
    }
    return false;
  }

 private:
  struct Place {
    const void* address;
    DType dtype;
  };
  // One number, for all groups.
  struct Column {
    const char* name;
    int index;
    std::vector<Scalar*> own;  // one per group
    std::shared_ptr<NumberColumn> numbers;
    std::vector<Tensor> tensors;  // empty for plain numbers
    std::vector<Place> places;    // of the values they hold
    // Per group, and how many there are.
    std::vector<std::uint8_t> moves, scheduled;
    std::size_t moving = 0;
    std::size_t scheduling = 0;
    bool changed = false;  // values have changed
    bool renamed = false;  // origins have changed
  };
  struct Read {
    std::size_t column;
    Wanted wanted;
    double answer;
  };

  void add_column(const ParamGroup::Named& named, std::size_t groups);
  static void add_number(Column& column, Scalar& number);
  bool take_changes();
  bool take_number(std::size_t k, std::size_t group);
  void take_origin(Column& column, std::size_t group) const;
  static void read_in_order(Column& column);
  static void read_tensors(Column& column);
  static void put(Column& column, std::size_t group, double value);
  bool answers_stay() const;
  void settle(std::size_t k);

  std::shared_ptr<const TensorGroups> places_;
  std::shared_ptr<NumberChanges> changes_;
  std::vector<Column> columns_;
  std::vector<Scalar> scalars_;
  std::vector<Read> reads_;
  bool reads_computed_ = false;  // something computed from them was read
};

/// Number of hyper-parameters of a group.
std::size_t numbers_in(ParamGroup& group);

/// True for each option that is a tensor in host memory, false for a plain
/// number, in the order of the options; groups of one kind can be updated
/// together. Empty for a group that stays alone because one of its numbers is
/// on a GPU.
std::vector<bool> kind_of(ParamGroup& group);

}  // namespace fuse
