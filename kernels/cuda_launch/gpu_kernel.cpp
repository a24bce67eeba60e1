#include "fusebook/cuda_launch/gpu_kernel.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <limits>
#include <span>
#include <utility>

#include "fusebook/cuda_launch/gpu_table.h"
#include "fusebook/prelude/gpu_layout.h"

namespace fuse {
namespace {

constexpr std::size_t most_tables = 4;

bool too_many_to_pass(const Table& table) {
  return i64(table.args().size()) > gpu_value_args;
}

bool same_bits(std::span<const double> a, std::span<const double> b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size_bytes()) == 0);
}

// No more blocks than can run at once, and of those only as many as give each
// block the same number of chunks, or one less: then none works on while the
// others are done.
unsigned grid_for(i64 chunks, const GpuModule& module) {
  const i64 most = std::min<i64>(chunks, i64(module.resident_blocks()));
  const i64 rounds = (chunks + most - 1) / most;
  return unsigned((chunks + rounds - 1) / rounds);
}

int phases_with_work(const Table& table) {
  int count = table.first_row() < table.rows().size() ? 1 : 0;
  for (const ReduceTable::Phase& phase : table.reductions().phases()) {
    if (phase.chunks.begin < phase.chunks.end) ++count;
  }
  return count;
}

std::string number_text(double value) {
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value);
  return {text.data(), end.ptr};
}

// "argument 2, whose value has changed from 0.1 to 0.2"
std::string first_change(const char* what, std::span<const double> old,
                         std::span<const double> now) {
  std::size_t i = 0;
  while (i < now.size() && i < old.size() &&
         std::memcmp(&old[i], &now[i], sizeof(double)) == 0) {
    ++i;
  }
  std::string text = fmt::format("{} {}", what, i);
  if (i < old.size() && i < now.size()) {
    text += fmt::format(", whose value has changed from {} to {}",
                        number_text(old[i]), number_text(now[i]));
  }
  return text;
}

}  // namespace

GpuKernel::GpuKernel(std::shared_ptr<Gpu> gpu,
                     std::shared_ptr<GpuModule> module)
    : gpu_(std::move(gpu)),
      module_(std::move(module)),
      cooperative_(module_->launches_cooperatively()) {}

void GpuKernel::launch(const Table& table) {
  if (table.rows().empty()) return;
  gpu_->context().refuse_in_recording("a separate launch");
  DeviceTable& on_device = find_table(table);
  update_scalars(table, on_device);
  update_arguments(table, on_device);
  const PhasedLaunch launch = bound(table, on_device);
  if (run_together(table, on_device, launch)) return;
  run_apart(table, on_device, launch);
}

// The arguments with this launch's scalars.
PhasedLaunch GpuKernel::bound(const Table& table, const DeviceTable& to) {
  PhasedLaunch phased = to.launch;
  Launch& launch = phased.launch.table;
  launch.column_count = table.launch().column_count;
  if (to.scalars == nullptr) return phased;
  const auto* const first =
      static_cast<const double*>(to.scalars->block.data());
  const std::size_t args = too_many_to_pass(table) ? table.args().size() : 0;
  launch.args = args > 0 ? first : nullptr;
  launch.columns = table.columns().empty() ? nullptr : first + args;
  return phased;
}

// A device that shares its multiprocessors with other programs may hold fewer
// blocks than it said; then this kernel does not ask again.
bool GpuKernel::run_together(const Table& table, DeviceTable& to,
                             PhasedLaunch launch) {
  if (!cooperative_ || phases_with_work(table) < 2) return false;
  const auto phases = table.reductions().phases();
  i64 most = launch.launch.chunk_count;
  for (const ReduceTable::Phase& phase : phases) {
    most = std::max(most, phase.chunks.end - phase.chunks.begin);
  }
  launch.phase_end = int(phases.size());
  const CurrentContext current(gpu_->context());
  const cuda::Result code = submit(to, launch, most, true);
  if (code == cuda::cooperative_launch_too_large ||
      code == cuda::not_supported) {
    cooperative_ = false;
    return false;
  }
  if (code != cuda::success) {
    gpu_->context().check(
        code, "cuLaunchCooperativeKernel",
        fmt::format("launching a kernel of {} phases", table.phases()));
  }
  was_submitted(to);
  return true;
}

void GpuKernel::run_apart(const Table& table, DeviceTable& to,
                          PhasedLaunch launch) {
  const CurrentContext current(gpu_->context());
  const auto run = [&](i64 chunks) {
    if (chunks == 0) return;
    const cuda::Result code = submit(to, launch, chunks, false);
    if (code != cuda::success) {
      gpu_->context().check(
          code, "cuLaunchKernel",
          fmt::format("launching a kernel over {} chunks", chunks));
    }
    was_submitted(to);
  };
  launch.stores = false;
  for (const ReduceTable::Phase& phase : table.reductions().phases()) {
    launch.phase_begin = launch.phase_end++;
    run(phase.chunks.end - phase.chunks.begin);
  }
  launch.phase_begin = launch.phase_end;
  launch.stores = true;
  run(launch.launch.chunk_count);
}

int GpuKernel::launches(const Table& table) const {
  const int phases = phases_with_work(table);
  return cooperative_ ? std::min(phases, 1) : phases;
}

// Tables keep the addresses they were given, so nothing is freed.
double* GpuKernel::numbers(std::size_t count) {
  const std::size_t bytes = count * sizeof(double);
  const std::size_t before = numbers_.empty() ? 0 : numbers_.back().bytes();
  if (numbers_.empty() || before < bytes) {
    numbers_.emplace_back(gpu_, std::max(bytes, 2 * before));
  }
  return static_cast<double*>(numbers_.back().data());
}

// Finds the table of a version; if it is to be changed (`idle`), only one that
// no graph will read again.
bool GpuKernel::make_newest(std::uint64_t version, bool idle) {
  if (version == 0) return false;
  const auto known =
      std::find_if(tables_.begin(), tables_.end(), [&](const auto& held) {
        return held->version == version && (!idle || held.use_count() == 1);
      });
  if (known == tables_.end()) return false;
  std::rotate(known, known + 1, tables_.end());
  return true;
}

GpuKernel::DeviceTable& GpuKernel::find_table(const Table& table) {
  if (make_newest(table.version(), false)) return *tables_.back();
  const bool captures = gpu_->context().is_capturing();
  if (!captures && make_newest(table.moved_from(), true)) {
    upload_moved(table, *tables_.back());
    return *tables_.back();
  }
  const GpuTableLayout layout = lay_out(table);
  gpu_->context().refuse_while_capturing(fmt::format(
      "the addresses of its {} tensors on the device (an upload of {} bytes)",
      table.rows().size(), layout.bytes));
  upload_table(table, layout, *take_table());
  return *tables_.back();
}

// The least recently used of those that no graph will read again. Reads in
// flight are safe: the upload follows them on the same stream.
std::shared_ptr<GpuKernel::DeviceTable> GpuKernel::take_table() {
  const auto idle =
      std::find_if(tables_.begin(), tables_.end(),
                   [](const auto& held) { return held.use_count() == 1; });
  if (tables_.size() >= most_tables && idle != tables_.end()) {
    std::rotate(idle, idle + 1, tables_.end());
  } else {
    tables_.push_back(std::make_shared<DeviceTable>());
  }
  return tables_.back();
}

void GpuKernel::upload_table(const Table& table, const GpuTableLayout& layout,
                             DeviceTable& to) {
  to.version = 0;
  to.was_launched = false;
  to.scalars = nullptr;
  if (to.block.bytes() < layout.bytes) to.block = GpuBlock(gpu_, layout.bytes);
  gpu_->staging().upload(
      to.block.address(), layout.bytes, "uploading a table of addresses",
      [&](void* memory) { write_table(table, layout, memory); });
  ++counters_.table_uploads;
  counters_.bytes_uploaded += std::int64_t(layout.bytes);
  to.pointers = layout.pointers;
  to.launch = phased_launch_at(table, layout, to.block.address());
  to.version = table.version();
}

// All readers of the old addresses are ahead of this on the stream.
void GpuKernel::upload_moved(const Table& table, DeviceTable& to) {
  const AddressSpan moved = table.moved();
  const auto addresses =
      table.pointers().subspan(moved.begin, moved.end - moved.begin);
  to.version = 0;
  gpu_->staging().upload(
      to.block.address() + to.pointers + moved.begin * sizeof(void*),
      addresses.size_bytes(), "uploading addresses that have changed",
      [&](void* memory) {
        std::memcpy(memory, static_cast<const void*>(addresses.data()),
                    addresses.size_bytes());
      });
  ++counters_.table_moves;
  counters_.bytes_uploaded += std::int64_t(addresses.size_bytes());
  to.version = table.version();
}

void GpuKernel::update_scalars(const Table& table, DeviceTable& to) {
  wanted_.clear();
  if (too_many_to_pass(table)) {
    wanted_.assign(table.args().begin(), table.args().end());
  }
  wanted_.insert(wanted_.end(), table.columns().begin(), table.columns().end());
  if (wanted_.empty()) {
    to.scalars = nullptr;
    return;
  }
  if (to.scalars != nullptr) {
    if (same_bits(to.scalars->values, wanted_)) return;
    gpu_->context().refuse_while_capturing(first_change(
        "to upload its scalars for groups of tensors again: number",
        to.scalars->values, wanted_));
  }
  gpu_->context().refuse_while_capturing(
      fmt::format("its {} scalars on the device", wanted_.size()));
  // A graph keeps reading the scalars it was captured with.
  if (to.scalars == nullptr || to.scalars.use_count() > 1) {
    to.scalars = std::make_shared<Scalars>();
  }
  upload_scalars(*to.scalars);
}

void GpuKernel::upload_scalars(Scalars& to) {
  const std::size_t bytes = wanted_.size() * sizeof(double);
  to.values.clear();
  if (to.block.bytes() < bytes) to.block = GpuBlock(gpu_, bytes);
  gpu_->staging().upload(
      to.block.address(), bytes, "uploading scalars",
      [&](void* memory) { std::memcpy(memory, wanted_.data(), bytes); });
  ++counters_.scalar_uploads;
  counters_.bytes_uploaded += std::int64_t(bytes);
  to.values = wanted_;
}

void GpuKernel::update_arguments(const Table& table, DeviceTable& to) {
  wanted_.clear();
  if (!too_many_to_pass(table)) {
    wanted_.assign(table.args().begin(), table.args().end());
  }
  wanted_.resize(std::size_t(gpu_argument_count(i64(table.args().size()))));
  if (gpu_->context().is_capturing()) {
    if (!to.was_launched) {
      gpu_->context().refuse_while_capturing(
          "to launch this kernel for the first time");
    }
    if (!same_bits(to.arguments, wanted_)) {
      gpu_->context().refuse_while_capturing(
          first_change("argument", to.arguments, wanted_));
    }
  }
  std::swap(to.arguments, wanted_);
}

// A kernel that does not reduce takes the first part of the launch alone.
cuda::Result GpuKernel::submit(DeviceTable& table, PhasedLaunch& launch,
                               i64 chunks, bool together) {
  GpuContext& context = gpu_->context();
  const unsigned grid = grid_for(chunks, *module_);
  std::array<void*, 2> parameters = {&launch, table.arguments.data()};
  if (together) {
    return context.api().launch_cooperative(
        module_->function(), grid, 1, 1, unsigned(gpu_block), 1, 1, 0,
        context.stream(), parameters.data());
  }
  return context.api().launch_kernel(
      module_->function(), grid, 1, 1, unsigned(gpu_block), 1, 1, 0,
      context.stream(), parameters.data(), nullptr);
}

void GpuKernel::was_submitted(DeviceTable& table) {
  GpuContext& context = gpu_->context();
  ++counters_.launches;
  table.was_launched = true;
  if (!context.is_capturing()) return;
  context.keep_for_graph(tables_.back());
  context.keep_for_graph(table.scalars);
  context.keep_for_graph(module_);
}

std::shared_ptr<GpuKernel> make_gpu_kernel(const std::string& source,
                                           std::shared_ptr<Gpu> gpu) {
  auto module = gpu->module(source);
  static_cast<void>(module->resident_blocks());  // throws if not even one fits
  return std::make_shared<GpuKernel>(std::move(gpu), std::move(module));
}

}  // namespace fuse
