#include "fusebook/optim_base/joined_numbers.h"

#include <algorithm>
#include <utility>

#include "fusebook/ops/element.h"
#include "fusebook/support/same_bytes.h"
#include "fusebook/trace/recorder.h"

namespace fuse {

JoinedNumbers::JoinedNumbers(std::span<ParamGroup* const> groups,
                             std::shared_ptr<const TensorGroups> places,
                             std::shared_ptr<NumberChanges> changes)
    : places_(std::move(places)), changes_(std::move(changes)) {
  for (ParamGroup* const group : groups) {
    std::size_t k = 0;
    auto add = [&](const ParamGroup::Named& named) {
      if (k == columns_.size()) add_column(named, groups.size());
      add_number(columns_[k++], *named.scalar);
    };
    group->for_each_number(add);
  }
  for (std::size_t k = 0; k < columns_.size(); ++k) {
    for (std::size_t g = 0; g < groups.size(); ++g) take_number(k, g);
  }
}

void JoinedNumbers::add_column(const ParamGroup::Named& named,
                               std::size_t groups) {
  Column& column = columns_.emplace_back();
  column.name = named.name;
  column.index = named.index;
  column.numbers = std::make_shared<NumberColumn>();
  column.numbers->groups = places_;
  column.numbers->values.resize(groups);
  column.moves.resize(groups);
  column.scheduled.resize(groups);
  column.changed = true;
  scalars_.push_back(*named.scalar);
}

void JoinedNumbers::add_number(Column& column, Scalar& number) {
  column.own.push_back(&number);
  if (!number.is_tensor()) return;
  const Tensor& tensor = number.tensor();
  column.tensors.push_back(tensor);
  column.places.push_back({tensor.impl()->data, tensor.dtype()});
}

JoinedNumbers::Change JoinedNumbers::take() {
  if (!take_changes()) return Change::kinds;
  // Reading a tensor may flush the recording.
  const Recorder* const recorder = Recorder::current();
  const bool in_order = recorder != nullptr && !recorder->lists().empty();
  for (Column& column : columns_) {
    if (column.tensors.empty()) continue;
    if (in_order) {
      read_in_order(column);
    } else {
      read_tensors(column);
    }
  }
  const bool moved =
      std::any_of(columns_.begin(), columns_.end(),
                  [](const Column& column) { return column.changed; });
  for (std::size_t k = 0; k < columns_.size(); ++k) settle(k);
  const bool stay = !moved || (answers_stay() && !reads_computed_);
  return stay ? Change::none : Change::asked;
}

// False if a number is of another kind now.
bool JoinedNumbers::take_changes() {
  const auto& groups = places_->numbers;
  bool same_kinds = true;
  if (changes_->all()) {
    for (std::size_t k = 0; k < columns_.size(); ++k) {
      for (std::size_t g = 0; g < groups.size(); ++g) {
        same_kinds = take_number(k, g) && same_kinds;
      }
    }
    return same_kinds;
  }
  std::size_t g = 0;  // usually in the order of the groups
  for (const auto& [whose, number] : changes_->numbers()) {
    const int group = int(whose);
    if (g + 1 < groups.size() && groups[g + 1] == group) ++g;
    if (groups[g] != group) {
      const auto found = std::lower_bound(groups.begin(), groups.end(), group);
      if (found == groups.end() || *found != group) continue;
      g = std::size_t(found - groups.begin());
    }
    same_kinds = take_number(number, g) && same_kinds;
  }
  return same_kinds;
}

bool JoinedNumbers::take_number(std::size_t k, std::size_t group) {
  Column& column = columns_[k];
  Scalar& number = *column.own[group];
  take_origin(column, group);
  number.watch(changes_,
               {std::uint32_t(places_->numbers[group]), std::uint32_t(k)});
  if (column.tensors.empty()) {
    if (number.is_tensor()) return false;
    put(column, group, number.value());
    return true;
  }
  return number.is_tensor() &&
         number.tensor().impl() == column.tensors[group].impl();
}

void JoinedNumbers::take_origin(Column& column, std::size_t group) const {
  Scalar& number = *column.own[group];
  const int whose = places_->numbers[group];
  if (number.origin().group != whose || number.origin().name != column.name) {
    Origin origin = number.origin();
    origin.name = column.name;
    origin.index = column.index;
    origin.group = whose;
    number.set_origin(origin);
  }
  const Origin& origin = number.origin();
  column.moving += origin.moves - column.moves[group];
  column.moves[group] = origin.moves;
  column.scheduling += origin.scheduled - column.scheduled[group];
  column.scheduled[group] = origin.scheduled;
  column.renamed = true;
}

// One by one, since each read may flush the recording.
void JoinedNumbers::read_in_order(Column& column) {
  for (std::size_t g = 0; g < column.own.size(); ++g) {
    put(column, g, column.own[g]->value());
  }
}

// Tensors stay where they are, so they need no look-up. They are far apart; a
// plain loop lets the processor fetch several at once.
void JoinedNumbers::read_tensors(Column& column) {
  const std::vector<Place>& places = column.places;
  for (std::size_t g = 0; g < places.size();) {
    const DType dtype = places[g].dtype;
    with_type(dtype, [&](auto type) {
      for (; g < places.size() && places[g].dtype == dtype; ++g) {
        put(column, g,
            double(load_element<decltype(type)>(places[g].address, 0)));
      }
    });
  }
}

// A recording may still hold the previous numbers.
void JoinedNumbers::put(Column& column, std::size_t group, double value) {
  if (same_bits(column.numbers->values[group], value)) return;
  // this one, and the Scalar that refers to it
  if (column.numbers.use_count() > 2) {
    column.numbers = std::make_shared<NumberColumn>(*column.numbers);
  }
  column.numbers->values[group] = value;
  column.changed = true;
}

void JoinedNumbers::settle(std::size_t k) {
  Column& column = columns_[k];
  const bool renamed = std::exchange(column.renamed, false);
  const bool changed = std::exchange(column.changed, false);
  if (!renamed && !changed) return;
  Origin origin = column.own[0]->origin();
  origin.moves = column.moving > 0;
  origin.scheduled = column.scheduling > 0;
  if (!changed) {
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

std::size_t numbers_in(ParamGroup& group) {
  std::size_t count = 0;
  auto add = [&](const ParamGroup::Named&) { ++count; };
  group.for_each_number(add);
  return count;
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
