#include "fusebook/codegen/describe.h"

#include <string_view>

namespace fuse {
namespace {

void append(std::string& list, std::string_view word) {
  if (!list.empty()) list += ", ";
  list += word;
}

std::string operations(const Body& body, Rate rate) {
  std::string list;
  for (const BodyNode& node : body.nodes) {
    if (node.rate == rate && node.arity > 0) append(list, name_of(node.op));
  }
  return list.empty() ? "nothing" : list;
}

std::string slots(const Body& body, bool BodySlot::* used) {
  std::string list;
  for (const BodySlot& slot : body.slots) {
    if (!(slot.*used) || slot.rate != Rate::element) continue;
    append(list, slot.name + (slot.strided ? " (strided)" : ""));
  }
  return list.empty() ? "nothing" : list;
}

}  // namespace

std::string describe(const Body& body) {
  return "once a launch:   " + operations(body, Rate::uniform) + "\n" +
         "once a tensor:   " + operations(body, Rate::entry) + "\n" +
         "once an element: " + operations(body, Rate::element) + "\n" +
         "loads:           " + slots(body, &BodySlot::loaded) + "\n" +
         "stores:          " + slots(body, &BodySlot::stored) + "\n" +
         "bytes an element: " + std::to_string(body.bytes_per_element()) + "\n";
}

std::string describe(const Plan& plan) {
  std::string text;
  for (const Body& body : plan.bodies) text += describe(body);
  return text;
}

}  // namespace fuse
