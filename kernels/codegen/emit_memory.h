#pragma once

#include <string>

#include "fusebook/codegen/body_values.h"

namespace fuse {

/// How elements lie in registers and in memory: structs `Element` (or
/// `Elements<Float>`), `Pointers` and, for strided lists, `Lines`.
std::string element_types(const BodyValues& values);
/// The functions that load and store one element.
std::string element_access(const BodyValues& values);

/// What a CPU asks for before it loads or stores it.
std::string element_wants(const BodyValues& values);

/// What a CPU that runs a body in lanes has besides: several elements at once,
/// through the memory and in registers.
std::string lane_access(const BodyValues& values);
/// What a GPU has besides: elements that move in packs of neighbours.
std::string pack_access(const BodyValues& values);

/// Where a body finds the elements of a list: a pointer or, for blocks, what
/// decodes them, and for positions what draws.
std::string place_type(const BodySlot& slot);
/// How the elements of a list in blocks are coded.
std::string codes_of(const BodySlot& slot);
/// What a body with lists in blocks has besides: `Held`, a block of each list
/// while it is computed.
std::string block_access(const BodyValues& values, Target target);

/// What a body that draws random bits has besides: where its lists of positions
/// get key and stream, and what a loop in lanes draws together.
std::string draw_access(const BodyValues& values, Target target);

}  // namespace fuse
