#pragma once

#include <cstdint>
#include <vector>

#include "fusebook/ir/program.h"

namespace fuse {

/// What somebody wants to know of a number that each group has for itself.
enum class Wanted : std::uint8_t { value, zero, tensor };

/// What an update asked about numbers of groups while it was tried, in this
/// thread and as long as this lives.
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

/// Groups do not agree on what was asked.
struct GroupsDiffer {
  std::vector<std::uint64_t> answers;  ///< one a group
};

/// The one answer of all groups. Throws GroupsDiffer where they give several
/// while an update is tried, Error else.
double read_column(const Number& number, const Origin& origin, Wanted wanted);

}  // namespace fuse
