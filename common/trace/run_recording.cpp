// The end of a recording: what it computes gets memory, and the program runs or
// is dropped.
#include "fusebook/support/error.h"
#include "fusebook/support/source_place.h"
#include "fusebook/tensor/tensor_layout.h"
#include "fusebook/trace/recorder.h"

namespace fuse {
namespace {

std::vector<Tensor> allocate(const ListImpl& list) {
  if (list.rate == Rate::entry) {
    return scalars(list.count, list.dtype, list.like->device);
  }
  std::vector<Tensor> tensors;
  tensors.reserve(list.count);
  for (const Tensor& model : list.like->models()) {
    tensors.push_back(empty_like(model, list.dtype));
  }
  return tensors;
}

}  // namespace

// Allocates memory for every list that is still held somewhere.
std::vector<Recorder::Result> Recorder::materialize() {
  std::vector<Result> results;
  for (auto& impl : pending_) {
    if (impl.use_count() == 1) continue;
    auto result = std::make_shared<ListImpl>();
    result->rate = impl->rate;
    result->dtype = impl->dtype;
    result->label = impl->label;
    result->hold(allocate(*impl));
    program_.store_result(slot_of(result), impl->value, std::source_location());
    results.push_back({impl, result->tensors});
  }
  return results;
}

void Recorder::execute() {
  struct Cleanup {
    Recorder& recorder;
    ~Cleanup() { recorder.abandon(); }
  } cleanup{*this};
  if (failed_) {
    throw Error(
        "a step failed half-way in a compiled function that continued after "
        "it, so nothing it recorded was executed: let the error leave the "
        "function");
  }
  read_numbers();
  const std::vector<StoredNumber> numbers = store_numbers();
  std::vector<Result> results = materialize();
  if (!program_.stores().empty()) executor_.execute(program_);
  for (Result& result : results) {
    result.list->recorder = nullptr;
    result.list->like = nullptr;
    result.list->hold(std::move(result.memory));
  }
  for (const StoredNumber& each : numbers) each.number->memory = each.memory;
  keep_effects();
}

void Recorder::keep_effects() {
  for (const auto& undo : undos_) undo->keep();
  undos_.clear();
}

// In reverse order: the first effect knows the original state.
void Recorder::take_back_effects() {
  for (; !undos_.empty(); undos_.pop_back()) undos_.back()->undo();
}

Recorder::CallMark Recorder::begin_call() const {
  return {serial(), std::int32_t(program_.nodes().size())};
}

void Recorder::end_call(CallMark mark) {
  program_.end_call(mark.recording == serial() ? mark.begin : 0);
}

void Recorder::flush(const std::string& why) {
  if (program_.stores().empty() && pending_.empty() && !awaits_numbers()) {
    keep_effects();
    return abandon();  // numbers that were loaded may change from now on
  }
  executor_.graph_break(
      why + ", after the operation at " +
      at(program_.call_place(ValueId(program_.nodes().size()) - 1)));
  execute();
}

void Recorder::finish() { execute(); }

void Recorder::abandon() {
  for (auto& impl : pending_) {
    if (impl->recorder != this) continue;
    impl->recorder = nullptr;
    impl->like = nullptr;
    impl->value = -1;
    if (impl.use_count() == 1) spare_.push_back(std::move(impl));
  }
  program_.clear();
  held_.clear();
  pending_.clear();
  for (Later& each : later_) {
    if (each.number.use_count() > 1) continue;
    *each.number = {};
    spare_numbers_.push_back(std::move(each.number));
  }
  later_.clear();
  released_.clear();
  places_.clear();
  spread_.clear();
  begin_segment();
  take_back_effects();
}

}  // namespace fuse
