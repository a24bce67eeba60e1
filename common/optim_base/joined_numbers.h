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

/// The hyper-parameters of groups that are updated together, one Scalar for each
/// of them. Only those that tell of a change are looked at again, and the memory
/// of tensors.
class JoinedNumbers {
 public:
  /// What has become of them since they were taken the last time.
  enum class Change {
    none,   ///< or other values that nobody has asked for
    asked,  ///< what an update has asked about them may have another answer now
    kinds,  ///< a number became a tensor, or another tensor, or the other way
  };

  JoinedNumbers() = default;
  /// Of these groups, which are all of one kind (see `kind_of`) and stay where
  /// they are. They tell their changes to what is that of all groups of an
  /// optimizer.
  JoinedNumbers(std::span<ParamGroup* const> groups,
                std::shared_ptr<const TensorGroups> places,
                std::shared_ptr<NumberChanges> changes);

  /// Takes what the numbers are now, and tells them whose they are.
  Change take();
  /// What an update has asked about them.
  void set_reads(const std::vector<ColumnReads::Read>& reads);
  std::span<const Scalar> scalars() const { return scalars_; }
  /// Which tensor of the batch is from which of the groups.
  const TensorGroups& places() const { return *places_; }
  /// True when a tensor that they are read from has a byte of this memory.
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
  // A number of all groups.
  struct Column {
    const char* name;
    int index;
    std::vector<Scalar*> own;  // of the groups
    std::shared_ptr<NumberColumn> numbers;
    std::vector<Tensor> tensors;  // none for plain numbers
    std::vector<Place> places;    // of what they hold
    // Of each group, and how many there are of them.
    std::vector<std::uint8_t> moves, scheduled;
    std::size_t moving = 0;
    std::size_t scheduling = 0;
    bool changed = false;  // values
    bool renamed = false;  // where they come from
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
  bool reads_computed_ = false;  // something that was computed from them
};

/// How many hyper-parameters a group has.
std::size_t numbers_in(ParamGroup& group);

/// Numbers and tensors in host memory, in the order of the options; groups of one
/// kind can be updated together. Empty for a group that stays alone, because a
/// number lies on a GPU.
std::vector<bool> kind_of(ParamGroup& group);

}  // namespace fuse
