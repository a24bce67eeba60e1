#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fusebook/nn/gemm.h"
#include "fusebook/prelude/host_math.h"

namespace fuse {

/// Of what the functions of a C library give, in float32 and float64: of any, the
/// last digits may differ from library to library.
std::uint64_t hash_of_functions(const Calls& library);
/// The same of matrix products, which differ from instruction set to instruction
/// set.
std::uint64_t hash_of_products(const GemmTable& products);

/// What ranks must have in common beside their program: the version of the
/// library, what the machine's C library computes, and its matrix products.
std::vector<std::string> machine_facts();

}  // namespace fuse
