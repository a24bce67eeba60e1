#include "fusebook/distributed/sharded_checkpoint.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <optional>

#include "fusebook/distributed/facts.h"
#include "fusebook/distributed/run_file.h"
#include "fusebook/distributed/whole_states.h"
#include "fusebook/support/output_file.h"

namespace fuse {
namespace {

template <class Scheduler>
RankCall call_of(const char* name, const std::string& path,
                 const std::vector<Scheduler*>& schedulers,
                 std::source_location place) {
  std::vector<std::string> facts = {fmt::format("the file '{}'", path)};
  for (const SchedulerBase* each : schedulers) {
    facts.push_back(each == nullptr ? "no scheduler" : each->name());
  }
  return {name, place, std::move(facts)};
}

}  // namespace

void save_checkpoint(const std::string& path, ShardedOptimizer& sharded,
                     const std::vector<const SchedulerBase*>& schedulers,
                     std::source_location place) {
  WholeStates::check_usable(sharded, "save_checkpoint", place);
  Ranks& ranks = sharded.ranks();
  RankCall call = call_of("save_checkpoint", path, schedulers, place);
  for (std::string& each : facts_of_optimizer(sharded.optimizer())) {
    call.facts.push_back(std::move(each));
  }
  ranks.agree(call);
  const bool is_first = ranks.rank() == 0;
  const auto described =
      ranks.gather(RunFile::describe(sharded), &RankTraffic::states);
  std::optional<RunFile> run;
  std::optional<OutputFile> file;
  std::string written;
  ranks.together(call, [&] {
    run.emplace(path, sharded, schedulers, described);
    if (!is_first) return;
    written = file.emplace("safetensors", path).written();
    file->begin();
  });
  written = ranks.gather(written, &RankTraffic::states)[0];
  ranks.together(call, [&] {
    FilePieces pieces(written);
    run->write_own(pieces);
    pieces.finish();
  });
  std::uint64_t hash = 0;
  ranks.or_end(call, [&] { hash = run->hash(ranks); });
  ranks.together(call, [&] {
    if (!is_first) return;
    FilePieces pieces(written);
    pieces.write(0, run->head(hash));
    pieces.finish();
    file->commit();
  });
}

void load_checkpoint(const std::string& path, ShardedOptimizer& sharded,
                     const std::vector<SchedulerBase*>& schedulers,
                     const LoadOptions& options, std::source_location place) {
  WholeStates::check_usable(sharded, "load_checkpoint", place);
  Ranks& ranks = sharded.ranks();
  const RankCall call = call_of("load_checkpoint", path, schedulers, place);
  ranks.agree(call);
  bool loaded = false;
  try {
    ranks.together(call, [&] {
      WholeStates whole(sharded);
      load_checkpoint(path, sharded.optimizer(), schedulers, options);
      whole.share();
      loaded = true;
    });
  } catch (const RanksDisagree&) {
    const auto notes = ranks.agree({call.name, call.place, {}}, loaded);
    if (std::find(notes.begin(), notes.end(), 1U) != notes.end()) {
      WholeStates::break_off(sharded);
    }
    throw;
  }
}

}  // namespace fuse
