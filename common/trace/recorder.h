#pragma once

#include <cstdint>
#include <memory>
#include <source_location>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "fusebook/ir/program.h"
#include "fusebook/ops/reductions.h"
#include "fusebook/tensor/tensor_list.h"
#include "fusebook/tensor/tracer.h"
#include "fusebook/trace/broadcast.h"
#include "fusebook/trace/facts.h"
#include "fusebook/trace/list_places.h"
#include "fusebook/trace/operands.h"
#include "fusebook/trace/scalar.h"
#include "fusebook/trace/undo.h"

namespace fuse {

class Function;

/// Runs a complete program; returns when its stores are in memory.
class Executor {
 public:
  Executor() = default;
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;
  virtual ~Executor() = default;
  virtual void execute(const Program& program) = 0;
  /// Called when a value is needed early; throws Error if that is forbidden.
  virtual void graph_break(const std::string& why) = 0;
  /// Where optimizers report their options; null if nothing needs them.
  virtual Facts* facts() { return nullptr; }
  /// The function being recorded, or null.
  virtual const Function* function() const { return nullptr; }
  /// Called before a tensor is written outside the recording.
  virtual void outside_write(const TensorImpl& /*tensor*/) {}
  /// Counts launches that were not part of the recording, and their bytes;
  /// `what` says in reports what they computed.
  virtual void count_outside(const char* /*what*/, int /*launches*/,
                             std::int64_t /*bytes*/) {}
  /// Called before an operation that writes into a list in memory is recorded.
  virtual void before_store(OpCode /*op*/, const TensorList& /*target*/,
                            Operands /*operands*/,
                            std::source_location /*place*/) {}
};

/// A reduction of lists: what it does to each element first, and to the number
/// that comes out of it, with operations of one operand.
struct Reduction {
  std::span<const OpCode> each;
  OpCode op{};  ///< of a tensor; see reductions.h
  std::span<const OpCode> last;
};

/// Turns list operations into a program, and executes it when it is complete or
/// when a value is needed. At most one is active on each thread.
class Recorder final : public Tracer {
 public:
  /// If `bake`, plain numbers are recorded as constants, else as arguments.
  Recorder(Executor& executor, bool bake);
  /// Discards whatever was not flushed.
  ~Recorder();

  /// The recorder of this thread, or nullptr outside `compile`.
  static Recorder* current() {
    return static_cast<Recorder*>(Tracer::current());
  }

  /// Appends an operation; the result is computed later.
  TensorList apply(OpCode op, Operands operands, std::source_location place);
  /// Appends an operation whose result replaces the content of `target`.
  void apply_into(OpCode op, const TensorList& target, Operands operands,
                  std::source_location place);
  /// Appends the conversion of a list of elements.
  TensorList cast(const TensorList& list, DType dtype,
                  std::source_location place);
  /// Appends a reduction to a number for each tensor, in float64.
  TensorList reduce(const Reduction& what, const TensorList& list,
                    std::source_location place);
  /// Appends a reduction of all tensors of a list to one number.
  Scalar total(const Reduction& what, const TensorList& list,
               std::source_location place);
  ValueId record_scalar(OpCode op, std::span<const Scalar* const> operands,
                        std::source_location place) override;
  bool loads(const Scalar& scalar) const override;
  std::shared_ptr<LaterNumber> later(ValueId value) override;
  Number number(ValueId value) const override;
  bool is_computed_later(ValueId value) const override;

  /// Marks the start of a call that records several operations and computes
  /// everything it stores before the first store.
  struct CallMark {
    std::uint64_t recording = 0;
    std::int32_t begin = 0;
  };
  CallMark begin_call() const;
  void end_call(CallMark mark);

  void flush(const std::string& why) override;
  /// Executes the rest.
  void finish();
  /// Discards the rest; lists that were not computed stay without a value.
  void abandon();
  /// Reverts `undo` if the current recording is never executed.
  void on_failure(std::shared_ptr<Undo> undo) {
    undos_.push_back(std::move(undo));
  }
  /// A group of operations failed half-way: nothing recorded may be executed
  /// any more, even if the error is caught.
  void fail() { failed_ = true; }
  /// True if the recording reads (or stores, if `stores_only`) this memory.
  bool involves(const TensorImpl& tensor, bool stores_only);

  bool uses(const ListImpl& list) const override;
  /// Keeps a gradient that its tensor releases until the recording no longer
  /// needs it.
  void keep(std::shared_ptr<TensorImpl> gradient) {
    released_.push_back(std::move(gradient));
  }

  Facts* facts() const { return executor_.facts(); }
  const Function* function() const { return executor_.function(); }
  /// Passes on a write from outside the recording.
  void outside_write(const TensorImpl& tensor) {
    executor_.outside_write(tensor);
  }
  /// Passes on launches of others.
  void count_outside(const char* what, int launches, std::int64_t bytes) const {
    executor_.count_outside(what, launches, bytes);
  }
  /// The lists of the segment, one per slot, valid also during execution.
  std::span<const std::shared_ptr<ListImpl>> lists() const { return held_; }

 private:
  friend class Recording;

  // A recorded list, and the memory for its value.
  struct Result {
    std::shared_ptr<ListImpl> list;
    std::vector<Tensor> memory;
  };

  // A number that is computed later, and the memory for it.
  struct StoredNumber {
    std::shared_ptr<LaterNumber> number;
    Tensor memory;
  };

  bool touch(Operands operands);
  void touch_blocks(const ListImpl& list);
  void touch_skips();
  ValueId unless_skipped(const TensorList& target, ValueId value,
                         std::source_location place);
  ValueId record(OpCode op, Operands operands, std::source_location place);
  ValueId record_alike(OpCode op, Operands operands, bool any_on_gpu,
                       std::source_location place);
  // For operands of different shapes: see record_broadcast.cpp.
  class Alike;
  TensorList apply_to_shapes(OpCode op, Operands operands,
                             std::source_location place);
  ValueId record_in_shapes(OpCode op, Operands operands, const ListShapes& to,
                           std::source_location place);
  void flush_unspread(Operands operands, const ListShapes& to,
                      std::source_location place);
  ValueId spread(ValueId value, const ListShapes& to,
                 std::source_location place);
  ValueId spread_anew(ValueId value, const ListShapes& to,
                      std::source_location place);
  TensorList broadcast(const TensorList& list, const ListShapes& to,
                       std::source_location place);
  TensorList pending_in(ValueId value, const std::shared_ptr<ListImpl>& like);
  ValueId value_of(const TensorList& list, std::source_location place);
  ValueId value_of(const Scalar& scalar, std::source_location place);
  ValueId load(const Scalar& number, std::source_location place);
  static void check_groups(Operands operands, std::size_t count);
  void take_slots(Operands operands);
  void check_device(const ListImpl& list) const;
  const ListImpl* first_placed() const;
  bool awaits_numbers() const;
  void read_numbers();
  std::int32_t slot_of(const std::shared_ptr<ListImpl>& list);
  TensorList pending(ValueId value, Operands operands);
  ValueId record_reduction(const Reduction& what, OpCode op,
                           const TensorList& list, std::source_location place);
  std::vector<StoredNumber> store_numbers();
  std::shared_ptr<ListImpl> take_spare();
  std::vector<Result> materialize();
  void execute();
  void keep_effects();
  void take_back_effects();

  Executor& executor_;
  bool bake_;
  Program program_;
  std::vector<std::shared_ptr<ListImpl>> held_;  // one per slot
  ListPlaces places_;  // of the lists that were looked up
  std::vector<std::shared_ptr<ListImpl>> pending_;  // without memory so far
  std::vector<std::shared_ptr<ListImpl>> spare_;  // for reuse as pending lists
  std::vector<std::shared_ptr<TensorImpl>> released_;  // may still be read
  struct Later {
    ValueId value;
    std::shared_ptr<LaterNumber> number;
  };
  // For each value, what it was last broadcast to.
  struct Spread {
    std::uint64_t shapes = 0;
    ValueId value = -1;
  };
  std::vector<Spread> spread_;
  std::vector<Later> later_;  // numbers that the host may read
  std::vector<std::shared_ptr<LaterNumber>> spare_numbers_;
  std::vector<std::shared_ptr<Undo>> undos_;
  bool failed_ = false;
};

/// Makes a recorder the current one of this thread for a scope.
class Recording {
 public:
  explicit Recording(Recorder& recorder);
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;
  ~Recording();

 private:
  Tracer* previous_;
};

/// Makes this process detect accesses to the data of tensors in a pending
/// recording.
void watch_accesses();

}  // namespace fuse
