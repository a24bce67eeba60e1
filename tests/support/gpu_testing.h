// What the tests of the GPU's host side share: a platform over the stand-in,
// tables over addresses, and an oracle for what a table looks like uploaded.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <source_location>
#include <string>
#include <vector>

#include "fusebook/cuda/gpu_platform.h"
#include "fusebook/cuda/module_compiler.h"
#include "fusebook/prelude/gpu_layout.h"
#include "fusebook/runtime/launch_table.h"
#include "support/cuda_stand_in.h"
#include "support/testing.h"

namespace testing {

/// Hands the text on as it is.
class TextCompiler final : public fuse::ModuleCompiler {
 public:
  fuse::ModuleImage compile(const std::string& source,
                            int capability) override {
    ++compilations;
    last_capability = capability;
    return {source, {}};
  }
  int compilations = 0;
  int last_capability = 0;
};

/// A stand-in and a platform that drives it.
struct GpuFixture {
  CudaStandIn driver;
  std::shared_ptr<TextCompiler> compiler = std::make_shared<TextCompiler>();
  fuse::GpuPlatform platform{"cuda", driver.driver(), compiler};
};

/// A table over lists of float tensors of the given sizes. The first list is
/// multiplied by scalars of the launch, which are arguments: `scale`, and so
/// many more. Further lists are negated: `groups` in all or, with columns, one
/// for each of them, multiplied by it. The first list's own column is 0.
class SampleTable {
 public:
  SampleTable(const std::vector<std::int64_t>& sizes, int groups, double scale,
              const std::vector<double>& columns = {}, int extra_args = 0) {
    const int lists = columns.empty() ? groups : 1 + int(columns.size());
    for (int g = 0; g < lists; ++g) {
      std::vector<void*> addresses;
      for (const std::int64_t n : sizes) addresses.push_back(next_address(n));
      lists_.emplace_back("params", addresses, sizes);
    }
    bind(scale, columns, extra_args);
  }
  /// The same lists with other scalars; true when the table was built again.
  bool bind(double scale, const std::vector<double>& columns = {},
            int extra_args = 0) {
    const fuse::Program p = record(scale, columns, extra_args);
    const fuse::Plan plan =
        fuse::make_plan(p, [](const fuse::Origin&) { return false; });
    return table.bind(plan, p, 1);
  }

  /// Puts a tensor of the first list somewhere else, for the next `bind`.
  void move(std::size_t e) {
    const fuse::ListView old = lists_[0].view();
    std::vector<void*> addresses(old.addresses, old.addresses + old.count);
    addresses[e] = next_address(old.numels[e]);
    const std::vector<std::int64_t> numels(old.numels, old.numels + old.count);
    lists_[0] = MemoryList<float>("params", addresses, numels);
  }

  fuse::Table table;

 private:
  static void* next_address(std::int64_t n) {
    static std::uintptr_t next = 1 << 20;
    void* const address = reinterpret_cast<void*>(next);
    next += std::uintptr_t(n) * 4 + 256;
    return address;
  }
  fuse::Program record(double scale, const std::vector<double>& columns,
                       int extra_args) {
    using fuse::OpCode;
    fuse::Program p;
    update(p, 0, [&](fuse::ValueId value) {
      value = apply(p, OpCode::mul, {value, p.argument(scale, {"scale"})});
      for (int k = 0; k < extra_args; ++k) {
        const auto factor = p.argument(scale + k + 1, {"extra", k});
        value = apply(p, OpCode::mul, {value, factor});
      }
      return value;
    });
    for (std::size_t g = 1; g < lists_.size(); ++g) {
      update(p, g, [&](fuse::ValueId value) {
        value = apply(p, OpCode::neg, {value});
        if (columns.empty()) return value;
        const auto factor = p.argument(columns[g - 1], {"lr"});
        return apply(p, OpCode::mul, {value, factor});
      });
    }
    return p;
  }
  template <class Change>
  void update(fuse::Program& p, std::size_t list, Change change) {
    const auto slot = p.slot(lists_[list].view(), lists_[list].info());
    const auto here = std::source_location::current();
    p.store(slot, change(p.load(slot, here)), here);
  }
  static fuse::ValueId apply(fuse::Program& p, fuse::OpCode op,
                             const std::vector<fuse::ValueId>& in) {
    return p.apply(op, in, std::source_location::current());
  }

  std::vector<MemoryList<float>> lists_;
};

/// The bytes of a vector's items, one after the other.
template <class T>
void append_bytes(std::vector<char>* bytes, const T& item) {
  const auto* const first = reinterpret_cast<const char*>(&item);
  bytes->insert(bytes->end(), first, first + sizeof(item));
}
inline void pad(std::vector<char>* bytes) {
  while (bytes->size() % 16 != 0) bytes->push_back(0);
}

/// What a table must look like on the device, built in another way than the
/// library does: element by element, a chunk begins where a tensor begins and
/// at every multiple of the chunk's size.
inline std::vector<char> expected_table(const fuse::Table& table) {
  std::vector<char> bytes;
  std::vector<fuse::Chunk> chunks;
  std::int64_t tensors = 0;
  for (const fuse::Row& row : table.rows()) {
    tensors = row.entry >= tensors ? row.entry + 1 : tensors;
    fuse::Chunk open = {
        row.pointers, row.entry, row.body, row.instance, 0, 0, 0};
    for (std::int64_t i = 0; i < row.numel; ++i) {
      if (i > 0 && i % 4096 == 0) {
        chunks.push_back(open);
        open.begin = i;
      }
      open.end = i + 1;
    }
    chunks.push_back(open);
  }
  for (void* const pointer : table.pointers()) append_bytes(&bytes, pointer);
  pad(&bytes);
  for (const fuse::i64 stride : table.strides()) append_bytes(&bytes, stride);
  pad(&bytes);
  for (fuse::Chunk& chunk : chunks) {
    for (const fuse::Chunk& other : chunks) {
      if (other.entry == chunk.entry) ++chunk.shares;
    }
  }
  for (const fuse::Chunk& chunk : chunks) append_bytes(&bytes, chunk);
  pad(&bytes);
  for (std::int64_t t = 0; t < tensors; ++t) append_bytes(&bytes, 0U);
  return bytes;
}

template <class T>
T read_as(const std::vector<char>& bytes) {
  T value;
  std::memcpy(&value, bytes.data(), sizeof(value));
  return value;
}

}  // namespace testing
