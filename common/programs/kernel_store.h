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

  /// True if it has the same operations, whatever the numbers.
  bool is_like(const CompiledProgram& known) const {
    return known.hash == hash && known.program.same_structure(program);
  }
  /// The program cut into its list domains, computed on first use.
  std::span<const Piece> pieces() const;

  const Program& program;
  const std::uint64_t hash;

 private:
  mutable std::vector<Piece> pieces_;
};

/// The programs of one function that have a kernel, the latest last.
class KernelStore {
 public:
  using Programs = std::vector<std::unique_ptr<CompiledProgram>>;

  /// The maximum number of programs that run on kernels made for others; beyond
  /// that, the least recently used is dropped. Adding it again needs no
  /// compiling.
  static constexpr std::size_t most_adapted = 32;

  /// The program with that structure whose baked numbers match those of
  /// `program`, searching from the latest; null if none does.
  CompiledProgram* find(const Request& request);
  /// Runs a program on the latest kernel whose bodies serve all its pieces: a
  /// difference only in how many lists go through which body needs no new
  /// kernel. Null if there is none.
  CompiledProgram* adapt(const Request& request, const Facts& facts);
  CompiledProgram& add(std::unique_ptr<CompiledProgram> compiled);

  /// True if a kernel was made for the same operations with another value of a
  /// number: the same literal, or the same hyper-parameter of some group.
  bool has_moved(const Request& request) const;
  /// Number of kernels made for exactly this structure.
  std::size_t made_for(const Request& request) const;
  /// Number of kernels made for new operations in a segment.
  std::size_t made_in(int segment) const;
  /// True if some piece consists of operations that no kernel has a body for.
  bool has_new_operations(const Request& request) const;

  /// The programs that have a kernel of their own and may come to share a launch
  /// with this one: some body serves both, or they are the same segment's for
  /// other parameter groups, whose gradients come and go. The latest first.
  std::vector<const CompiledProgram*> companions(const Request& request,
                                                 int segment) const;

  /// Starts a call: programs it uses are kept until it ends.
  void begin_call() { ++calls_; }
  /// Notes that the current call uses this program.
  void use(CompiledProgram& compiled, int segment);
  /// The last program used in a segment of a call; null if none.
  const CompiledProgram* last_in(int segment) const;

  const Programs& programs() const { return programs_; }
  /// The program whose kernel was made last; null if none.
  const CompiledProgram* newest() const;
  /// The program that was used last; null if none.
  CompiledProgram* latest() const { return latest_; }

 private:
  void make_room();

  Programs programs_;
  std::uint64_t calls_ = 0;
  CompiledProgram* latest_ = nullptr;
  std::vector<CompiledProgram*> last_in_;  // one per segment
};

}  // namespace fuse
