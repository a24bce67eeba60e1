#include "fusebook/programs/trace_launch.h"

#include <string>
#include <utility>
#include <vector>

#include "fusebook/programs/launch_trace.h"

namespace fuse {
namespace {

std::vector<std::string> operations(const Body& body) {
  std::vector<std::string> names;
  for (const BodyNode& node : body.nodes) {
    if (node.arity == 0 || node.rate != Rate::element) continue;
    names.emplace_back(name_of(node.op));
  }
  return names;
}

}  // namespace

void trace_launch(const CompiledProgram& compiled) {
  LaunchTrace* const trace = LaunchTrace::current();
  if (trace == nullptr) return;
  LaunchRecord record;
  record.bytes = compiled.table.bytes();
  for (const Body& body : compiled.plan.bodies) {
    record.bodies.push_back(operations(body));
  }
  const Launch launch = compiled.table.launch();
  std::int64_t tensors = 0;
  for (const Row& row : compiled.table.rows()) {
    if (row.entry < tensors) continue;  // another line of the same tensor
    ++tensors;
    const Body& body = compiled.plan.bodies[row.body];
    LaunchRecord::Row traced;
    traced.body = row.body;
    for (std::size_t s = 0; s < body.slots.size(); ++s) {
      if (body.slots[s].rate != Rate::element) continue;
      traced.addresses.push_back(launch.pointers[row.pointers + i64(s)]);
    }
    record.rows.push_back(std::move(traced));
  }
  trace->add(std::move(record));
}

}  // namespace fuse
