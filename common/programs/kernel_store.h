#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "fusebook/ir/pieces.h"
#include "fusebook/programs/compiled_program.h"

namespace fuse {

/// A recorded program for which a kernel is wanted.
class Request {
 public:
  explicit Request(const Program& recorded)
      : program(recorded), hash(recorded.structure_hash()) {}

  /// Made for the same operations, whatever the numbers.
  bool is_like(const CompiledProgram& known) const {
    return known.hash == hash && known.program.same_structure(program);
  }
  /// The program cut into its list domains, when that is first asked for.
  std::span<const Piece> pieces() const;

  const Program& program;
  const std::uint64_t hash;

 private:
  mutable std::vector<Piece> pieces_;
};

/// The programs of one function that have a kernel, the newest last.
class KernelStore {
 public:
  using Programs = std::vector<std::unique_ptr<CompiledProgram>>;

  /// So many programs at most run on kernels that were made for others; beyond
  /// that the one used longest ago goes. To have it again costs no compiling.
  static constexpr std::size_t most_adapted = 32;

  /// The program of that structure whose baked numbers are those of `program`,
  /// the newest first; else null.
  CompiledProgram* find(const Request& request);
  /// Runs a program on the newest kernel whose bodies serve all its pieces: what
  /// differs only in how many lists go through which body needs no kernel of its
  /// own. Null where there is none.
  CompiledProgram* adapt(const Request& request, const Facts& facts);
  CompiledProgram& add(std::unique_ptr<CompiledProgram> compiled);

  /// True when one was made for the same operations, but for another value of a
  /// number: the same literal, or the same hyper-parameter of some group.
  bool has_moved(const Request& request) const;
  /// Kernels that were made for exactly this structure.
  std::size_t made_for(const Request& request) const;
  /// Kernels that were made for new operations in a segment.
  std::size_t made_in(int segment) const;
  /// True when some piece is made of operations that no kernel has a body for.
  bool has_new_operations(const Request& request) const;

  /// A call begins: what it uses is kept until it ends.
  void begin_call() { ++calls_; }
  /// Notes that the running call uses it.
  void use(CompiledProgram& compiled, int segment);
  /// What was used last in a segment of a call; null when nothing was.
  const CompiledProgram* last_in(int segment) const;

  const Programs& programs() const { return programs_; }
  /// The one whose kernel was made last; null when there is none.
  const CompiledProgram* newest() const;
  /// The one that was used last; null when there is none.
  CompiledProgram* latest() const { return latest_; }

 private:
  void make_room();

  Programs programs_;
  std::uint64_t calls_ = 0;
  CompiledProgram* latest_ = nullptr;
  std::vector<CompiledProgram*> last_in_;  // one a segment
};

}  // namespace fuse
