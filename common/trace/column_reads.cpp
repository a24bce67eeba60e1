#include "fusebook/trace/column_reads.h"

#include <algorithm>
#include <bit>
#include <string>
#include <utility>

#include "fusebook/support/error.h"

namespace fuse {
namespace {

thread_local ColumnReads* current_reads = nullptr;

std::vector<std::uint64_t> answers_of(const NumberColumn& column,
                                      Wanted wanted) {
  std::vector<std::uint64_t> answers;
  for (const double value : column.values) {
    const auto bits = std::bit_cast<std::uint64_t>(value);
    const auto is_zero = std::uint64_t(value == 0);
    const auto group = std::uint64_t(answers.size());
    answers.push_back(wanted == Wanted::value  ? bits
                      : wanted == Wanted::zero ? is_zero
                                               : group);
  }
  return answers;
}

}  // namespace

ColumnReads::ColumnReads() { current_reads = this; }
ColumnReads::~ColumnReads() { current_reads = nullptr; }
ColumnReads* ColumnReads::current() { return current_reads; }

double read_column(const Number& number, const Origin& origin, Wanted wanted) {
  if (ColumnReads* const reads = ColumnReads::current()) {
    reads->reads.push_back({number.column.get(), wanted, number.value});
  }
  if (number.is_single() && wanted != Wanted::tensor) return number.value;
  GroupsDiffer differ{answers_of(*number.column, wanted)};
  const bool agree = std::all_of(
      differ.answers.begin(), differ.answers.end(),
      [&](std::uint64_t each) { return each == differ.answers[0]; });
  if (agree) return number.value;
  if (ColumnReads::current() != nullptr) throw std::move(differ);
  throw Error(to_string(origin) +
              " was read, but it differs between the groups that are updated "
              "together; what `update` reads must depend only on its options");
}

}  // namespace fuse
