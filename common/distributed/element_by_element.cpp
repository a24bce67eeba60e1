#include "fusebook/distributed/element_by_element.h"

#include <string_view>

#include "fusebook/support/content_hash.h"

namespace fuse {
namespace {

// The structure alone does not tell a number that comes from elsewhere.
std::uint64_t hash_of(const Program& program) {
  std::uint64_t hash = program.structure_hash();
  for (const ScalarLeaf& leaf : program.scalars()) {
    for_each_number(leaf, [&](double value, const Origin& /*origin*/) {
      hash = content_hash({reinterpret_cast<const char*>(&value), sizeof value},
                          hash);
    });
  }
  return hash;
}

}  // namespace

std::string fact_of(const RecordedStep& recorded) {
  return "a step recorded as " + hex_digits(recorded.hash);
}

void StepRecorder::Look::execute(const Program& program) {
  seen.is_by_element = program.reductions().empty() && !breaks;
  seen.hash = hash_of(program);
  throw Seen();
}

RecordedStep StepRecorder::record(bool with_hooks) {
  look_.seen = {};
  look_.breaks = false;
  try {
    const Recording recording(recorder_);
    stand_ins_.step(with_hooks);
    recorder_.finish();
  } catch (const Seen&) {
    return look_.seen;
  } catch (...) {
    recorder_.abandon();
    throw;
  }
  return {};
}

}  // namespace fuse
