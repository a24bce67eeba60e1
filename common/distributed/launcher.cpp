#include "fusebook/distributed/launcher.h"

#include <fmt/core.h>
#include <mpi.h>

#include <array>
#include <charconv>
#include <cstdlib>
#include <string_view>

namespace fuse {
namespace {

// Of Open MPI, and of MPICH and those that descend from it.
constexpr std::array<std::array<const char*, 2>, 2> variables = {
    {{"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"},
     {"PMI_SIZE", "PMI_RANK"}}};

int number_in(const char* variable, int otherwise) {
  const char* const text = std::getenv(variable);
  if (text == nullptr) return otherwise;
  const std::string_view digits = text;
  int number = otherwise;
  std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return number;
}

}  // namespace

std::optional<Launched> launched_by_another() {
  int known = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &known);
  if (known > 1) return std::nullopt;
  for (const auto& [size, rank] : variables) {
    const int started = number_in(size, 1);
    if (started > 1) return Launched{size, started, number_in(rank, 0)};
  }
  return std::nullopt;
}

std::string told_of(const Launched& other) {
  return fmt::format(
      "a launcher has started {} ranks ({}), but MPI knows of one: use the "
      "launcher of the MPI library that the program is built with",
      other.size, other.by);
}

}  // namespace fuse
