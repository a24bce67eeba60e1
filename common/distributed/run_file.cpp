#include "fusebook/distributed/run_file.h"

#include <iomanip>
#include <map>
#include <span>
#include <sstream>
#include <type_traits>
#include <utility>

#include "fusebook/distributed/share_states.h"
#include "fusebook/distributed/whole_states.h"
#include "fusebook/support/content_hash.h"

namespace fuse {
namespace {

// A state of a share, as its rank tells it.
struct ToldState {
  std::string name;
  bool is_number = false;
  TensorKind kind;
};

void tell(std::ostream& out, const ToldState& state) {
  out << std::quoted(state.name) << ' ' << state.is_number << ' '
      << int(state.kind.dtype) << ' ' << state.kind.shape.size();
  for (const std::int64_t size : state.kind.shape) out << ' ' << size;
  out << '\n';
}

ToldState take_state(std::istream& in) {
  ToldState state;
  int dtype = 0;
  std::size_t dims = 0;
  in >> std::quoted(state.name) >> state.is_number >> dtype >> dims;
  state.kind.dtype = DType(dtype);
  state.kind.shape.resize(dims);
  for (std::int64_t& size : state.kind.shape) in >> size;
  return state;
}

}  // namespace

struct RunFile::Contents {
  Metadata texts;
  KindMap kinds;
  std::map<std::string, std::vector<Source>> sources;  // by name
};

std::string RunFile::describe(const ShardedOptimizer& sharded) {
  std::ostringstream out;
  for (const Tensor& view : sharded.own()) {
    const ParamStates states = sharded.optimizer().states(view);
    out << states.size() << '\n';
    for (const auto& [name, state] : states) {
      tell(out, {name, is_number(state, view), {state.dtype(), state.shape()}});
    }
  }
  return out.str();
}

RunFile::Contents RunFile::contents_of(
    ShardedOptimizer& sharded,
    const std::vector<const SchedulerBase*>& schedulers,
    const std::vector<std::string>& described) {
  Contents all;
  std::vector<std::pair<std::size_t, std::size_t>> places;  // of parameters
  {
    const WholeStates whole(sharded);
    Optimizer& optimizer = sharded.optimizer();
    RunContents run = contents_of_run(optimizer, schedulers);
    all.texts = std::move(run.texts);
    all.kinds = kinds_of(run.tensors);
    for (const auto& [name, tensor] : run.tensors) {
      all.sources[name] = {{0, 0, tensor}};
    }
    for (std::size_t g = 0; g < optimizer.group_count(); ++g) {
      for (std::size_t i = 0; i < optimizer.group(g).params.size(); ++i) {
        places.emplace_back(g, i);
        all.sources[param_place(g, i)].clear();
      }
    }
  }
  std::vector<std::istringstream> told;
  for (const std::string& each : described) told.emplace_back(each);
  auto own = sharded.own().begin();
  for (const Share& share : sharded.shares()) {
    const auto& [g, i] = places[share.param];
    const bool is_here = share.owner == sharded.ranks().rank();
    const Tensor view = is_here ? *own++ : Tensor();
    const auto first = std::size_t(share.begin);
    all.sources[param_place(g, i)].push_back({share.owner, first, view});
    std::istringstream& in = told[std::size_t(share.owner)];
    std::size_t count = 0;
    for (in >> count; count > 0; --count) {
      const ToldState state = take_state(in);
      const std::string name = state_place(g, i) + state.name;
      const Tensor& param = sharded.parameters()[share.param];
      const bool is_part = !state.is_number && share.count != param.numel();
      const bool is_known =
          !all.kinds
               .try_emplace(
                   name, is_part ? TensorKind{state.kind.dtype, param.shape()}
                                 : state.kind)
               .second;
      // All ranks that share a parameter have its numbers.
      if (is_known && !is_part) continue;
      const Tensor here =
          is_here ? sharded.optimizer().state(view, state.name) : Tensor();
      all.sources[name].push_back({share.owner, is_part ? first : 0, here});
    }
  }
  return all;
}

RunFile::RunFile(const std::string& path, ShardedOptimizer& sharded,
                 const std::vector<const SchedulerBase*>& schedulers,
                 const std::vector<std::string>& described)
    : RunFile(path, sharded.ranks().rank(),
              contents_of(sharded, schedulers, described)) {}

RunFile::RunFile(const std::string& path, int rank, const Contents& contents)
    : rank_(rank), layout_(path, contents.texts, contents.kinds) {
  for (std::size_t e = 0; e < layout_.entries().size(); ++e) {
    const SafetensorsLayout::Entry& entry = layout_.entries()[e];
    const std::size_t size = size_of(contents.kinds.at(entry.tensor).dtype);
    for (const Source& source : contents.sources.at(entry.tensor)) {
      pieces_.push_back(
          {e, source.owner, entry.begin + source.first * size, source.here});
    }
  }
}

void RunFile::write_own(FilePieces& file) const {
  for (const Piece& piece : pieces_) {
    if (piece.owner != rank_) continue;
    const bool is_scales = layout_.entries()[piece.entry].is_scales;
    file.write(piece.begin, EntryBytes(piece.here, is_scales).bytes());
  }
}

std::uint64_t RunFile::hash(Ranks& ranks) const {
  static_assert(std::is_trivially_copyable_v<ContentHash>);  // it travels
  ContentHash hash(layout_.first_hash());
  int holder = 0;
  const auto hand_on = [&](int to) {
    ranks.hand_on(std::as_writable_bytes(std::span(&hash, 1)), holder, to,
                  &RankTraffic::states);
    holder = to;
  };
  auto next = pieces_.begin();
  for (std::size_t e = 0; e < layout_.entries().size(); ++e) {
    for (; next != pieces_.end() && next->entry == e; ++next) {
      hand_on(next->owner);
      if (holder != rank_) continue;
      const bool is_scales = layout_.entries()[e].is_scales;
      hash.add(EntryBytes(next->here, is_scales).bytes());
    }
    if (e + 1 < layout_.entries().size()) hash = ContentHash(hash.value());
  }
  hand_on(0);
  return hash.value();
}

}  // namespace fuse
