#include "fusebook/trace/rehearsal.h"

#include <algorithm>
#include <array>

#include "fusebook/ir/alias_check.h"
#include "fusebook/trace/recorder.h"

namespace fuse {
namespace {

// The next operation depends on values that do not exist.
struct CannotGoOn {};

class Rehearsal final : public Executor {
 public:
  explicit Rehearsal(const std::function<bool(const ListImpl&)>& is_new)
      : is_new_(is_new) {}

  void execute(const Program& /*program*/) override { throw CannotGoOn(); }
  void graph_break(const std::string& /*why*/) override { throw CannotGoOn(); }
  void outside_write(const TensorImpl& /*tensor*/) override {
    throw CannotGoOn();
  }
  void before_store(OpCode op, const TensorList& target, Operands operands,
                    std::source_location place) override {
    const bool any =
        is_new_(*target.impl()) ||
        std::any_of(operands.begin(), operands.end(),
                    [&](const Operand* operand) {
                      return operand->is_list && is_new_(*operand->list.impl());
                    });
    if (any) check(op, target, operands, place);
  }

 private:
  // Checked as a separate program, like an eager operation.
  void check(OpCode op, const TensorList& target, Operands operands,
             std::source_location place) {
    one_.clear();
    std::array<ValueId, 4> in{};
    for (std::size_t k = 0; k < operands.size(); ++k) {
      in[k] = value_of(*operands[k], place);
    }
    const auto values = std::span(in).first(operands.size());
    const ValueId result = op == OpCode::cast || op == OpCode::fill
                               ? in[0]
                               : one_.apply(op, values, place);
    one_.store(slot_of(*target.impl()), result, place);
    const auto never = [](const Origin&) { return false; };
    check_overlaps(make_plan(one_, never), one_);
  }

  // Values not in memory yet will be in new memory.
  ValueId value_of(const Operand& operand, std::source_location place) {
    if (!operand.is_list || operand.list.impl()->recorder != nullptr) {
      return one_.argument(0, {});
    }
    return one_.load(slot_of(*operand.list.impl()), place);
  }
  std::int32_t slot_of(const ListImpl& list) {
    return one_.slot(list.view(), list.info());
  }

  const std::function<bool(const ListImpl&)>& is_new_;
  Program one_;
};

}  // namespace

bool rehearse(const std::function<void()>& operations,
              const std::function<bool(const ListImpl&)>& is_new) {
  Rehearsal rehearsal(is_new);
  Recorder recorder(rehearsal, false);
  const Recording recording(recorder);
  try {
    operations();
    return true;
  } catch (const CannotGoOn&) {
    return false;
  }
}

}  // namespace fuse
