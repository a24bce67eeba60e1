#include "fusebook/compile/compiled_state.h"

#include <utility>

namespace fuse {

CompiledState::CompiledState(CompileOptions options, std::source_location place)
    : function(std::move(options), place), recorder(function, true) {}

CompiledState::Entry::Entry(CompiledState& state) : state_(state) {
  if (!state.thread_.enter()) state.function.refuse_threads();
}
CompiledState::Entry::~Entry() { state_.thread_.leave(); }

CompiledState::Call::Call(CompiledState& state) : state_(state) {
  state.function.begin();
}
CompiledState::Call::~Call() { state_.recorder.abandon(); }

std::shared_ptr<CompiledState> make_compiled_state(
    const CompileOptions& options, std::source_location place) {
  return std::make_shared<CompiledState>(options, place);
}

}  // namespace fuse
