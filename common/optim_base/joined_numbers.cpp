#include "fusebook/optim_base/joined_numbers.h"

#include <algorithm>
#include <utility>

#include "fusebook/ops/element.h"
#include "fusebook/support/same_bytes.h"
#include "fusebook/trace/recorder.h"

namespace fuse {

JoinedNumbers::JoinedNumbers(std::span<ParamGroup* const> groups,
                             std::shared_ptr<const TensorGroups> places)
    : places_(std::move(places)) {
  auto add = [&](const ParamGroup::Named& named) {
    Column& column = columns_.emplace_back();
    column.numbers = std::make_shared<NumberColumn>();
    column.numbers->groups = places_;
    column.numbers->values.resize(groups.size());
    column.changed = true;
    scalars_.push_back(*named.scalar);
  };
  groups[0]->for_each_number(add);
  for (ParamGroup* const group : groups) {
    std::size_t k = 0;
    auto add_tensor = [&](const ParamGroup::Named& named) {
      Column& column = columns_[k++];
      if (!named.scalar->is_tensor()) return;
      const Tensor& tensor = named.scalar->tensor();
      column.tensors.push_back(tensor);
      column.places.push_back({tensor.impl()->data, tensor.dtype()});
    };
    group->for_each_number(add_tensor);
  }
}

// Visits the numbers of one group after the other.
struct JoinedNumbers::Taking {
  JoinedNumbers& joined;
  std::vector<Origin>& origins;
  // Something was recorded, which may have to run before a tensor is read.
  bool careful = false;
  std::size_t group = 0;
  std::size_t k = 0;
  bool same_kinds = true;

  void operator()(const ParamGroup::Named& named) {
    Scalar& scalar = *named.scalar;
    tell_origin(named);
    Origin& origin = origins[k];
    if (group == 0) origin = scalar.origin();
    origin.moves |= scalar.origin().moves;
    origin.scheduled |= scalar.origin().scheduled;
    Column& column = joined.columns_[k++];
    const bool same_kind =
        column.tensors.empty()
            ? !scalar.is_tensor()
            : scalar.is_tensor() &&
                  scalar.tensor().impl() == column.tensors[group].impl();
    same_kinds = same_kinds && same_kind;
    if (!same_kind || (scalar.is_tensor() && !careful)) return;
    joined.put(column, group, scalar.value());
  }

  void tell_origin(const ParamGroup::Named& named) const {
    const int number = joined.places_->numbers[group];
    const Origin& known = named.scalar->origin();
    if (known.group == number && known.name == named.name) return;
    Origin origin = known;
    origin.name = named.name;
    origin.index = named.index;
    origin.group = number;
    named.scalar->set_origin(origin);
  }
};

// Tensors stay where they are, so that they need not be looked up; they lie far
// apart, and one after the other the processor fetches several at once.
void JoinedNumbers::read_tensors() {
  for (Column& column : columns_) {
    for (std::size_t g = 0; g < column.places.size(); ++g) {
      const Place& place = column.places[g];
      put(column, g, with_type(place.dtype, [&](auto type) {
            return double(load_element<decltype(type)>(place.address, 0));
          }));
    }
  }
}

JoinedNumbers::Change JoinedNumbers::take(std::span<ParamGroup* const> groups) {
  thread_local std::vector<Origin> origins;
  origins.resize(columns_.size());
  const Recorder* const recorder = Recorder::current();
  Taking taking{*this, origins};
  taking.careful = recorder != nullptr && !recorder->lists().empty();
  for (ParamGroup* const group : groups) {
    taking.k = 0;
    group->for_each_number(taking);
    ++taking.group;
  }
  if (!taking.same_kinds) return Change::kinds;
  if (!taking.careful) read_tensors();
  const bool moved =
      std::any_of(columns_.begin(), columns_.end(),
                  [](const Column& column) { return column.changed; });
  for (std::size_t k = 0; k < columns_.size(); ++k) settle(k, origins[k]);
  const bool stay = !moved || (answers_stay() && !reads_computed_);
  return stay ? Change::none : Change::asked;
}

// A recording may still have the numbers that were there before.
void JoinedNumbers::put(Column& column, std::size_t group, double value) {
  if (same_bits(column.numbers->values[group], value)) return;
  // This, and the Scalar that stands for it.
  if (column.numbers.use_count() > 2) {
    column.numbers = std::make_shared<NumberColumn>(*column.numbers);
  }
  column.numbers->values[group] = value;
  column.changed = true;
}

void JoinedNumbers::settle(std::size_t k, const Origin& origin) {
  Column& column = columns_[k];
  if (!std::exchange(column.changed, false)) {
    scalars_[k].set_origin(origin);
    return;
  }
  const auto& values = column.numbers->values;
  column.numbers->same =
      std::all_of(values.begin(), values.end(),
                  [&](double each) { return same_bits(each, values[0]); });
  scalars_[k] =
      Scalar::of_groups(column.numbers, !column.tensors.empty(), origin);
}

void JoinedNumbers::set_reads(const std::vector<ColumnReads::Read>& reads) {
  reads_.clear();
  reads_computed_ = false;
  for (const ColumnReads::Read& read : reads) {
    const auto column = std::find_if(
        columns_.begin(), columns_.end(),
        [&](const Column& each) { return each.numbers.get() == read.column; });
    if (column == columns_.end()) {
      reads_computed_ = true;
    } else {
      reads_.push_back(
          {std::size_t(column - columns_.begin()), read.wanted, read.answer});
    }
  }
}

bool JoinedNumbers::answers_stay() const {
  return std::all_of(reads_.begin(), reads_.end(), [&](const Read& read) {
    const NumberColumn& now = *columns_[read.column].numbers;
    if (read.wanted == Wanted::value) {
      return now.same && same_bits(now.values[0], read.answer);
    }
    return std::all_of(now.values.begin(), now.values.end(), [&](double each) {
      return (each == 0) == (read.answer == 0);
    });
  });
}

std::vector<bool> kind_of(ParamGroup& group) {
  std::vector<bool> kind;
  bool on_host = true;
  auto add = [&](const ParamGroup::Named& named) {
    kind.push_back(named.scalar->is_tensor());
    on_host = on_host && !named.scalar->is_on_gpu();
  };
  group.for_each_number(add);
  if (!on_host) kind.clear();
  return kind;
}

}  // namespace fuse
