#pragma once

#include <cstdint>
#include <source_location>
#include <string>

#include "fusebook/ir/plan.h"

namespace fuse {

/// How a place in a source file is written.
using PlaceText = std::string (*)(const std::source_location& place);

/// What a body is written for. On a GPU elements also move in packs.
enum class Target : std::uint8_t { cpu, gpu };

/// True for a body that a CPU runs with several elements at once, through the
/// text of lanes.h: it has elements of 16 bits, or in blocks of 8, and computes them
/// in float32.
bool runs_in_lanes(const Body& body);
/// True for such a body of bfloat16 alone, that is not long: where registers have 8
/// lanes, its sets come in pairs.
bool runs_in_pairs(const Body& body);
/// True for a body with more operations on elements than two sets of lanes, or two
/// parts, gain from: it would only take longer to compile.
bool is_long(const Body& body);

/// A body as `struct Body<number>`: what the loops of the prelude need, with named
/// values. With `place_text`, each line says which operation it is and where it was
/// written.
std::string body_text(const Body& body, int number, Target target,
                      PlaceText place_text);

}  // namespace fuse
