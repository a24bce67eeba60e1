#include "fusebook/cpu/tile_runner.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>

#include "fusebook/cpu/traffic.h"
#include "fusebook/layout/strided_copy.h"
#include "fusebook/ops/blocks_of.h"
#include "fusebook/prelude/draws.h"
#include "fusebook/prelude/half.h"

namespace fuse {
namespace {

double read_scalar(DType dtype, const void* address) {
  double value = 0;
  loops().casts[std::size_t(dtype)][std::size_t(DType::float64)][0](
      &value, &address, 1);
  return value;
}

void write_scalar(DType dtype, void* address, double value) {
  const void* const in = &value;
  loops().casts[std::size_t(DType::float64)][std::size_t(dtype)][0](address,
                                                                    &in, 1);
}

constexpr i64 line_bytes = 64;  // that a processor fetches at once

double evaluate(const BodyNode& node, const std::vector<double>& values) {
  if (node.op == OpCode::cast) {
    // Eight bytes hold a number of any type.
    double stored = 0;
    write_scalar(node.dtype, &stored, values[std::size_t(node.in[0])]);
    return read_scalar(node.dtype, &stored);
  }
  std::array<double, 4> in{};
  for (std::size_t k = 0; k < node.arity; ++k) {
    in[k] = values[std::size_t(node.in[k])];
  }
  return apply_to_numbers(node.op, std::span(in).first(node.arity));
}

bool is_input(const BodyNode& node) {
  return node.op == OpCode::argument || node.op == OpCode::load;
}

// Elements go to neighbouring lanes, from `lane` on.
template <class How, class T>
void take(How how, const void* elements, i64 n, i64 lane, double* lanes) {
  // "auto" would forget that they may be at any address.
  const device::Unaligned<T>* const values =
      static_cast<const device::Unaligned<T>*>(elements);
  for (i64 i = 0; i < n;) {
    const i64 count = std::min(n - i, reduction_lanes - lane);
    FUSE_INDEPENDENT
    for (i64 k = 0; k < count; ++k) {
      double& to = lanes[lane + k];
      to = how.join(to, how.term(double(values[i + k])));
    }
    i += count;
    lane = 0;
  }
}

}  // namespace

TileRunner::TileRunner(const Body& body, const TileProgram& direct,
                       const TileProgram& careful)
    : body_(body),
      direct_(direct),
      careful_(careful),
      values_(body.nodes.size()),
      scalars_(std::max(direct.scalars.size(), careful.scalars.size())),
      buffers_(std::size_t(std::max(direct.buffers, careful.buffers))),
      staged_(is_staged() ? body.slots.size() : 0),
      lanes_(direct.reductions.size() * std::size_t(reduction_lanes)) {
  for (std::size_t s = 0; s < body.slots.size(); ++s) {
    const BodySlot& slot = body.slots[s];
    const bool elements = slot.rate == Rate::element;
    if (elements && !slot.blocks && !slot.draws()) lists_.push_back(s);
  }
}

void TileRunner::start(const Launch& launch, bool coincident) {
  launch_ = launch;
  tiles_ = coincident ? &careful_ : &direct_;
  ready_ = false;
  for (std::size_t i = 0; i < body_.nodes.size(); ++i) {
    const BodyNode& node = body_.nodes[i];
    if (node.op == OpCode::constant) {
      values_[i] = node.value;
    } else if (node.rate == Rate::uniform) {
      values_[i] = node.op == OpCode::argument ? launch.args[node.index]
                                               : evaluate(node, values_);
    }
  }
}

void TileRunner::run(const Row& row, i64 begin, i64 end, bool whole) {
  row_ = &row;
  end_ = end;
  prepare(row.pointers, row.instance);
  stage(row.pointers);
  const bool whole_row = tiles_->buffers == 0 && strides_ == nullptr &&
                         !body_.has_blocks() && !body_.draws();
  const i64 step = whole_row ? end - begin : tile_size;
  for (i64 i = begin; i < end; i += step) run_tile(i, std::min(step, end - i));
  if (whole) store_entry();
}

void TileRunner::finish(const Row& row) {
  prepare(row.pointers, row.instance);
  store_entry();
}

void TileRunner::reduce(const Reducing& work, const ReducedTensor& tensor,
                        i64 chunk) {
  row_ = nullptr;
  end_ = 0;
  reduced_ = tensor.pointers;
  prepare(tensor.pointers, tensor.instance);
  const i64 begin = chunk * reduction_chunk;
  const i64 end = std::min(begin + reduction_chunk, tensor.numel);
  const int used = device::used_lanes(end - begin);
  for (std::size_t k = 0; k < tiles_->reductions.size(); ++k) {
    const double first = with_reduction(tiles_->reductions[k].op,
                                        [](auto how) { return how.first(); });
    std::fill_n(lanes_of(k), used, first);
  }
  for (i64 i = begin; i < end;) {
    const i64 line = i / tensor.line;
    const i64 line_begin = line * tensor.line;
    const i64 stop = std::min(line_begin + tensor.line, end);
    const i64 pointers = tensor.pointers + line * i64(body_.slots.size());
    pointers_ = launch_.pointers + pointers;
    stage(pointers);
    reduce_line(i - line_begin, stop - i, i - begin);
    i = stop;
  }
  for (std::size_t k = 0; k < tiles_->reductions.size(); ++k) {
    const i64 to = tensor.chunks == 1
                       ? tensor.results + i64(k) * tensor.apart
                       : tensor.partials + i64(k) * tensor.chunks + chunk;
    work.numbers[to] = with_reduction(tiles_->reductions[k].op, [&](auto how) {
      return device::join_lanes(how, lanes_of(k), used);
    });
  }
}

// Elements [first, first + n) of a line, the first of which is number `element`
// of its chunk.
void TileRunner::reduce_line(i64 first, i64 n, i64 element) {
  for (i64 i = 0; i < n; i += tile_size) {
    const i64 count = std::min(tile_size, n - i);
    run_steps(first + i, count);
    take_tile(first + i, count, (element + i) % reduction_lanes);
    if (TrafficCounter* const counter = TrafficCounter::current()) {
      count_tile(*counter, count);
    }
  }
}

void TileRunner::take_tile(i64 first, i64 n, i64 lane) {
  for (std::size_t k = 0; k < tiles_->reductions.size(); ++k) {
    const TileReduction& reduction = tiles_->reductions[k];
    const void* const values = address(reduction.in, first);
    with_reduction(reduction.op, [&](auto how) {
      if (reduction.dtype == DType::float64) {
        take<decltype(how), double>(how, values, n, lane, lanes_of(k));
      } else {
        take<decltype(how), float>(how, values, n, lane, lanes_of(k));
      }
    });
  }
}

// Reads the inputs of the per-tensor stage; false if they are bit-identical to
// those of the last row.
bool TileRunner::read_inputs(i64 instance) {
  const double* columns = launch_.columns + instance * launch_.column_count;
  bool changed = !ready_;
  for (std::size_t i = 0; i < body_.nodes.size(); ++i) {
    const BodyNode& node = body_.nodes[i];
    if (node.rate != Rate::entry || !is_input(node)) continue;
    const double value =
        node.op == OpCode::argument
            ? columns[node.index]
            : read_scalar(body_.slots[std::size_t(node.index)].dtype,
                          pointers_[node.index]);
    if (std::memcmp(&value, &values_[i], sizeof(value)) == 0) continue;
    values_[i] = value;
    changed = true;
  }
  return changed;
}

// The per-tensor stage, run once for consecutive rows with the same inputs.
void TileRunner::prepare(i64 pointers, i64 instance) {
  pointers_ = launch_.pointers + pointers;
  if (!read_inputs(instance)) return;
  for (std::size_t i = 0; i < body_.nodes.size(); ++i) {
    const BodyNode& node = body_.nodes[i];
    if (node.rate != Rate::entry || is_input(node)) continue;
    if (is_reduction(node.op)) continue;
    values_[i] = evaluate(node, values_);
  }
  for (std::size_t k = 0; k < tiles_->scalars.size(); ++k) {
    const TileScalar& scalar = tiles_->scalars[k];
    write_scalar(scalar.dtype, &scalars_[k],
                 values_[std::size_t(scalar.value)]);
  }
  ready_ = true;
}

// Gathers strided elements tile by tile.
void TileRunner::stage(i64 pointers) {
  strides_ = nullptr;
  if (!body_.strided()) return;
  const i64* const strides = launch_.strides + pointers;
  for (std::size_t s = 0; s < body_.slots.size(); ++s) {
    if (strides[s] != 1) strides_ = strides;
  }
}

bool TileRunner::is_staged() const {
  return body_.strided() || body_.has_blocks() || body_.draws();
}

// Strided elements, those of blocks and what is drawn are computed elsewhere.
bool TileRunner::is_staged(std::size_t slot) const {
  return body_.slots[slot].blocks || body_.slots[slot].draws() ||
         (strides_ != nullptr && strides_[slot] != 1);
}

// Elements of a block wait there for the last of them, which may be in a later tile.
void* TileRunner::staged(std::size_t slot, i64 first) {
  const auto& blocks = body_.slots[slot].blocks;
  auto* const values = reinterpret_cast<float*>(staged_[slot].values);
  return blocks ? values + first % block_size_of(*blocks) : values;
}

void TileRunner::encode_held(std::size_t slot, i64 first, i64 n) {
  const DType dtype = *body_.slots[slot].blocks;
  const i64 size = block_size_of(dtype);
  const i64 end = first + n;
  if (end % size != 0 && end != end_) return;
  const i64 begin = first - first % size;
  encode_blocks(dtype, static_cast<const float*>(staged(slot, begin)),
                end - begin, pointers_[slot], begin);
}

void TileRunner::gather(i64 first, i64 n) {
  for (std::size_t s = 0; s < body_.slots.size(); ++s) {
    const BodySlot& slot = body_.slots[s];
    if (!slot.loaded) continue;
    if (slot.draws()) {
      draw(s, first, n);
      continue;
    }
    if (slot.blocks) {
      decode_blocks(*slot.blocks, pointers_[s], first, n,
                    static_cast<float*>(staged(s, first)));
      continue;
    }
    if (strides_ == nullptr || strides_[s] == 1) continue;
    const auto size = size_of(slot.dtype);
    const char* const from = static_cast<const char*>(pointers_[s]) +
                             first * strides_[s] * i64(size);
    copy_strided(staged_[s].values, 1, from, strides_[s], n, size);
  }
}

// The address of a position is that position.
void TileRunner::draw(std::size_t slot, i64 first, i64 n) {
  const BodyNode& node = body_.nodes[std::size_t(body_.slots[slot].draw)];
  const i64 stride = strides_ == nullptr ? 1 : strides_[slot];
  const auto begin = reinterpret_cast<device::u64>(pointers_[slot]);
  device::draw_elements(device::random_stream(values_[std::size_t(node.in[1])],
                                              values_[std::size_t(node.in[2])]),
                        begin + device::u64(first * stride), stride, n,
                        reinterpret_cast<float*>(staged_[slot].values));
}

void TileRunner::scatter(i64 first, i64 n) {
  for (std::size_t s = 0; s < body_.slots.size(); ++s) {
    const BodySlot& slot = body_.slots[s];
    if (!slot.stored) continue;
    if (slot.blocks) {
      encode_held(s, first, n);
      continue;
    }
    if (strides_ == nullptr || strides_[s] == 1) continue;
    const auto size = size_of(slot.dtype);
    char* const to =
        static_cast<char*>(pointers_[s]) + first * strides_[s] * i64(size);
    copy_strided(to, strides_[s], staged_[s].values, 1, n, size);
  }
}

void* TileRunner::address(Place place, i64 first) {
  const auto index = std::size_t(place.index);
  if (place.kind == Place::Kind::scalar) return &scalars_[index];
  if (place.kind == Place::Kind::buffer) return buffers_[index].values;
  if (is_staged(index)) return staged(index, first);
  return static_cast<char*>(pointers_[place.index]) +
         first * i64(size_of(body_.slots[index].dtype));
}

void TileRunner::run_steps(i64 first, i64 n) {
  if (!staged_.empty()) gather(first, n);
  for (std::size_t s = 0; s < tiles_->steps.size(); ++s) {
    const TileStep& step = tiles_->steps[s];
    want_next(first + n, s);
    const void* in[4] = {};
    for (int k = 0; k < step.arity; ++k) in[k] = address(step.in[k], first);
    step.loop(address(step.out, first), in, n);
  }
}

// Every step asks for its share of the tile that starts at `first`: what is asked for
// at once has to wait, and what nobody asked for comes too late.
void TileRunner::want_next(i64 first, std::size_t step) const {
  if (first >= end_ || strides_ != nullptr) return;
  const i64 n = std::min(tile_size, end_ - first);
  const auto steps = i64(tiles_->steps.size());
  const i64 begin = first + n * i64(step) / steps;
  const i64 end = first + n * i64(step + 1) / steps;
  for (const std::size_t s : lists_) {
    const auto size = i64(size_of(body_.slots[s].dtype));
    const char* const list = static_cast<const char*>(pointers_[s]);
    for (i64 at = begin * size; at < end * size; at += line_bytes) {
      __builtin_prefetch(list + at);
    }
  }
}

void TileRunner::run_tile(i64 first, i64 n) {
  run_steps(first, n);
  for (const TileCopy& copy : tiles_->copies) {
    const DType dtype = body_.slots[std::size_t(copy.slot)].dtype;
    std::memcpy(address({Place::Kind::memory, copy.slot}, first),
                buffers_[std::size_t(copy.buffer)].values,
                std::size_t(n) * size_of(dtype));
  }
  if (!staged_.empty()) scatter(first, n);
  if (TrafficCounter* const counter = TrafficCounter::current()) {
    count_tile(*counter, n);
  }
}

void TileRunner::count_tile(TrafficCounter& counter, i64 n) const {
  std::vector<TrafficCounter::Elements> moved(body_.slots.size());
  for (const TileStep& step : tiles_->steps) {
    for (int k = 0; k < step.arity; ++k) {
      if (step.in[k].kind != Place::Kind::memory) continue;
      auto& of_slot = moved[std::size_t(step.in[k].index)];
      if (of_slot.stores == 0) of_slot.loads = n;
    }
    if (step.out.kind != Place::Kind::memory) continue;
    moved[std::size_t(step.out.index)].stores += n;
  }
  for (const TileCopy& copy : tiles_->copies) {
    moved[std::size_t(copy.slot)].stores += n;
  }
  for (const TileReduction& reduction : tiles_->reductions) {
    if (reduction.in.kind != Place::Kind::memory) continue;
    moved[std::size_t(reduction.in.index)].loads = n;
  }
  for (std::size_t s = 0; s < moved.size(); ++s) {
    const BodySlot& slot = body_.slots[s];
    if (slot.rate != Rate::element || slot.draws()) continue;
    counter.add(tensor_of(s), moved[s]);
  }
}

// The first line of a tensor begins where the tensor does.
const void* TileRunner::tensor_of(std::size_t slot) const {
  if (row_ == nullptr) return launch_.pointers[reduced_ + i64(slot)];
  const Row* first = row_;
  while (first > launch_.rows && first[-1].entry == row_->entry) --first;
  return launch_.pointers[first->pointers + i64(slot)];
}

void TileRunner::store_entry() const {
  for (const Store& store : body_.stores) {
    const BodySlot& slot = body_.slots[std::size_t(store.slot)];
    if (slot.rate != Rate::entry) continue;
    write_scalar(slot.dtype, pointers_[store.slot],
                 values_[std::size_t(store.value)]);
  }
}

}  // namespace fuse
