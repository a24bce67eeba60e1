// The arguments of a kernel, on the host and on a GPU.
#ifndef FUSEBOOK_LAUNCH_H
#define FUSEBOOK_LAUNCH_H

#ifndef FUSEBOOK_TARGET_H  // a kernel has no files to include
#include "fusebook/prelude/target.h"
#endif

namespace fuse {

// One tensor of a list, in every slot of its body; or one line of it, where
// lists are strided. The lines of a tensor are adjacent.
struct Row {
  i64 numel;
  i64 pointers;  // where its addresses start in Launch::pointers
  i64 entry;     // number of its tensor
  int body;      // which of the kernel's bodies updates it
  int instance;  // the row of columns that it reads
};

// A share of the work: from element `begin` of row `row` up to, not including,
// element `end` of row `last_row`. Rows in between are whole.
struct Part {
  i64 row;
  i64 begin;
  i64 last_row;
  i64 end;
};

// A share of a GPU's work: elements [begin, end) of one row, with what a block
// must know about that row. Its tensor has `shares` of them; the last one to
// read the per-tensor scalars does the per-tensor stores.
struct Chunk {
  i64 pointers;
  i64 entry;
  int body;
  int instance;
  i64 begin;
  i64 end;
  i64 shares;
};

// All arguments of a kernel.
struct Launch {
  const Row* rows;
  void* const* pointers;
  const double* args;     // scalars of the whole launch
  const double* columns;  // scalars of each instance, `column_count` apart
  i64 column_count;
  const i64*
      strides;  // of each pointer, in elements; null if all of them are 1
  i64 row_count;
};

// The arguments of a kernel on a GPU, all in device memory. `tickets` counts
// the shares of each tensor that have read its scalars, and is zero between
// launches. Chunks describe the rows, so the table has none.
struct GpuLaunch {
  Launch table;
  const Chunk* chunks;
  i64 chunk_count;
  unsigned* tickets;
};

}  // namespace fuse

#endif  // FUSEBOOK_LAUNCH_H
