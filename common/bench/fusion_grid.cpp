#include "fusebook/bench/fusion_grid.h"

#include <fmt/core.h>

#include <optional>
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

using Column = std::optional<std::size_t>;  // nothing: some are left out

std::vector<Column> shown_tensors(std::size_t count, std::size_t most) {
  std::vector<Column> columns;
  const std::size_t first = count <= most || most == 0 ? count : most - 1;
  for (std::size_t i = 0; i < first; ++i) columns.emplace_back(i);
  if (first < count) columns.insert(columns.end(), {Column(), count - 1});
  return columns;
}

template <class F>
std::string row_text(const std::string& head,
                     const std::vector<Column>& columns, const F& cell) {
  std::string text = fmt::format("{:<8}", head);
  for (const Column& column : columns) {
    const std::string name =
        column ? fmt::format("tensor {}", *column) : std::string("...");
    text += fmt::format("  {:>{}}", column ? cell(*column) : name, name.size());
  }
  return text + "\n";
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

std::string to_string(const FusionGrid& grid, std::size_t most_tensors) {
  const auto columns = shown_tensors(grid.cells.size(), most_tensors);
  std::string text = row_text("launch", columns, [](std::size_t tensor) {
    return fmt::format("tensor {}", tensor);
  });
  for (std::size_t k = 0; k < grid.operations.size(); ++k) {
    text += row_text(grid.operations[k], columns, [&](std::size_t tensor) {
      return std::to_string(grid.cells[tensor][k]);
    });
  }
  return text;
}

}  // namespace fuse
