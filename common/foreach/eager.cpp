#include "fusebook/foreach/eager.h"

#include <string>

#include "fusebook/compile/compiled_function.h"
#include "fusebook/trace/map_scope.h"

namespace fuse {
namespace {

// Runs single operations. One per thread, so that threads never wait.
struct Eager {
  Eager() { function.set_eager(); }

  Function function{{.name = "eager", .backend = Backend::interpreted}};
  Recorder recorder{function, false};
};

Recorder& eager_recorder() {
  static thread_local Eager instance;
  return instance.recorder;
}

}  // namespace

EagerCall::EagerCall() : recorder_(eager_recorder()) {}

EagerCall::~EagerCall() { recorder_.abandon(); }

void refuse_in_map(std::string_view name, std::source_location place) {
  const MapScope* const scope = MapScope::current();
  if (scope == nullptr) return;
  scope->refuse_list_call("foreach_" + std::string(name), place);
}

}  // namespace fuse
