#pragma once

#include <cstdint>
#include <vector>

#include "fusebook/ir/program.h"

namespace fuse {

/// What is asked about a number that differs by group.
enum class Wanted : std::uint8_t { value, zero, tensor };

/// Collects what an update asks about numbers of groups during a trial run, on
/// this thread, while this object lives.
class ColumnReads {
 public:
  struct Read {
    const NumberColumn* column;
    Wanted wanted;
    double answer;
  };

  ColumnReads();
  ColumnReads(const ColumnReads&) = delete;
  ColumnReads& operator=(const ColumnReads&) = delete;
  ~ColumnReads();

  static ColumnReads* current();
  std::vector<Read> reads;
};

/// Thrown when groups disagree on an answer.
struct GroupsDiffer {
  std::vector<std::uint64_t> answers;  ///< one per group
};

/// The common answer of all groups. If they disagree, throws GroupsDiffer
/// during the trial run of an update, otherwise Error.
double read_column(const Number& number, const Origin& origin, Wanted wanted);

}  // namespace fuse
