#pragma once

#include <string>

#include "fusebook/codegen/body_values.h"

namespace fuse {

/// The fields in which values cross from one stage into the next.
std::string stage_types(const BodyValues& values);
/// The functions of the stages, in their order: `uniform`, `inputs`,
/// `per_tensor` and `compute`. With `place_text`, each line says which operation
/// it is and where it was written.
std::string stages(const BodyValues& values, PlaceText place_text);
/// For a body that reduces: how many reductions and slots it has, and the
/// function that visits each reduction with its value of an element.
std::string reduce(const BodyValues& values);
/// The function that stores what was computed once per tensor.
std::string finish(const BodyValues& values);
/// Whether that function has anything to do, for a GPU.
std::string finish_trait(const BodyValues& values);

}  // namespace fuse
