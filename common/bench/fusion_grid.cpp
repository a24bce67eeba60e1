#include "fusebook/bench/fusion_grid.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <sstream>
#include <unordered_map>
#include <unordered_set>

#include "fusebook/programs/launch_trace.h"
#include "fusebook/support/error.h"

namespace fuse {
namespace {

// Determines the parameter to which a row of a launch belongs. State is
// recognised by what it appears with anywhere in the trace; memory of
// temporaries, which is reused for one tensor after another, by what it
// appeared with last.
class Owners {
 public:
  Owners(const std::vector<Tensor>& params,
         const std::vector<LaunchRecord>& launches) {
    for (std::size_t i = 0; i < params.size(); ++i) {
      lasting_[params[i].raw_data()] = i;
      lasting_[params[i].grad().raw_data()] = i;
    }
    while (learn(launches)) {
    }
  }

  std::size_t find(const LaunchRecord::Row& row) {
    std::optional<std::size_t> owner = known(lasting_, row);
    if (!owner) owner = known(passing_, row);
    if (!owner) {
      throw Error("a launch uses a tensor that belongs to no parameter");
    }
    for (const void* address : row.addresses) passing_[address] = *owner;
    return *owner;
  }

 private:
  using Map = std::unordered_map<const void*, std::size_t>;

  std::optional<std::size_t> known(const Map& map,
                                   const LaunchRecord::Row& row) const {
    for (const void* address : row.addresses) {
      const auto found = map.find(address);
      if (found != map.end()) return found->second;
    }
    return std::nullopt;
  }

  // One pass over the trace; true if it found something new.
  bool learn(const std::vector<LaunchRecord>& launches) {
    bool news = false;
    for (const LaunchRecord& launch : launches) {
      for (const LaunchRecord::Row& row : launch.rows) {
        const auto owner = known(lasting_, row);
        if (!owner) continue;
        for (const void* address : row.addresses) {
          news = learn(address, *owner) || news;
        }
      }
    }
    return news;
  }

  bool learn(const void* address, std::size_t owner) {
    if (temporary_.contains(address)) return false;
    const auto [at, added] = lasting_.try_emplace(address, owner);
    if (!added && at->second != owner) {
      lasting_.erase(at);
      temporary_.insert(address);
      return true;
    }
    return added;
  }

  Map lasting_;
  Map passing_;
  std::unordered_set<const void*> temporary_;
};

std::string row_text(const std::string& head,
                     const std::vector<std::string>& cells,
                     const std::vector<std::string>& operations) {
  std::ostringstream text;
  text << head << std::string(12 - std::min<std::size_t>(12, head.size()), ' ');
  for (std::size_t k = 0; k < cells.size(); ++k) {
    const std::size_t width = std::max<std::size_t>(operations[k].size(), 3);
    text << "  " << std::string(width - std::min(width, cells[k].size()), ' ')
         << cells[k];
  }
  text << "\n";
  return text.str();
}

}  // namespace

FusionGrid trace_step(const std::vector<Tensor>& params,
                      const std::function<void()>& step) {
  check_callable(step, "the step");
  for (const Tensor& param : params) check_defined(param, "a parameter");
  const LaunchTrace trace;
  step();
  for (const Tensor& param : params) {
    check_defined(param.grad(), "the gradient of a parameter");
  }
  Owners owners(params, trace.launches());
  FusionGrid grid;
  grid.cells.resize(params.size());
  std::vector<std::vector<std::string>> operations(params.size());
  for (const LaunchRecord& launch : trace.launches()) {
    ++grid.launches;
    grid.bytes += launch.bytes;
    for (const LaunchRecord::Row& row : launch.rows) {
      const std::size_t owner = owners.find(row);
      for (const std::string& name : launch.bodies[row.body]) {
        operations[owner].push_back(name);
        grid.cells[owner].push_back(grid.launches);
      }
    }
  }
  grid.operations =
      operations.empty() ? std::vector<std::string>() : operations.front();
  for (const auto& others : operations) {
    if (others == grid.operations) continue;
    throw Error("the step does different things to different tensors");
  }
  return grid;
}

std::string to_string(const FusionGrid& grid, std::size_t most_rows) {
  std::string text = row_text("launch", grid.operations, grid.operations);
  const std::size_t count = grid.cells.size();
  const bool all = count <= most_rows;
  for (std::size_t i = 0; i < count; ++i) {
    if (!all && i + 1 < count && i + 1 >= most_rows) {
      if (i + 1 == most_rows) text += "...\n";
      continue;
    }
    std::vector<std::string> cells;
    for (const std::int64_t launch : grid.cells[i]) {
      cells.push_back(std::to_string(launch));
    }
    text += row_text(fmt::format("tensor {}", i), cells, grid.operations);
  }
  return text;
}

}  // namespace fuse
