// Numbers that a recording computes, and that the host may ask for.
#include <algorithm>

#include "fusebook/trace/program_numbers.h"
#include "fusebook/trace/recorder.h"

namespace fuse {

std::shared_ptr<LaterNumber> Recorder::later(ValueId value) {
  std::shared_ptr<LaterNumber> number;
  if (spare_numbers_.empty()) {
    number = std::make_shared<LaterNumber>();
  } else {
    number = std::move(spare_numbers_.back());
    spare_numbers_.pop_back();
  }
  later_.push_back({value, number});
  return number;
}

Number Recorder::number(ValueId value) const {
  return number_of(program_, value);
}

bool Recorder::awaits_numbers() const {
  return std::any_of(later_.begin(), later_.end(), [](const Later& each) {
    return each.number.use_count() > 1;
  });
}

// Anything that still holds one may use it in the next recording.
void Recorder::read_numbers() {
  for (const Later& each : later_) {
    if (each.number.use_count() > 1 && !is_computed_later(each.value)) {
      each.number->value = number(each.value).value;
    }
  }
}

bool Recorder::is_computed_later(ValueId value) const {
  return needs_reduction(program_, value);
}

// Memory for the numbers that the host may still ask for.
std::vector<Recorder::StoredNumber> Recorder::store_numbers() {
  std::vector<StoredNumber> stored;
  for (const Later& each : later_) {
    if (each.number.use_count() == 1 || !is_computed_later(each.value)) {
      continue;
    }
    const Tensor memory = empty({}, DType::float64, first_placed()->device);
    const TensorList list = TensorList::per_tensor({memory}, "number");
    program_.store_result(slot_of(list.impl()), each.value,
                          std::source_location());
    stored.push_back({each.number, memory});
  }
  return stored;
}

}  // namespace fuse
