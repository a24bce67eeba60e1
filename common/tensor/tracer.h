#pragma once

#include <cstdint>
#include <memory>
#include <source_location>
#include <span>
#include <string>

#include "fusebook/ir/program.h"
#include "fusebook/ops/ops.h"

namespace fuse {

struct ListImpl;
struct LaterNumber;
class Scalar;

/// What lists and numbers ask of the recording that they are part of.
class Tracer {
 public:
  Tracer(const Tracer&) = delete;
  Tracer& operator=(const Tracer&) = delete;

  /// That of this thread, or nullptr outside `compile`.
  static Tracer* current();

  /// Executes what was recorded so far because of an access from outside.
  virtual void flush(const std::string& why) = 0;
  /// True when an operation of the recording has this list.
  virtual bool uses(const ListImpl& list) const = 0;

  virtual ValueId record_scalar(OpCode op,
                                std::span<const Scalar* const> operands,
                                std::source_location place) = 0;
  /// True for a number that the kernel will read, or compute from such a one:
  /// its value is not known here.
  virtual bool loads(const Scalar& scalar) const = 0;
  /// Where such a number is left when the host has to know it.
  virtual std::shared_ptr<LaterNumber> later(ValueId value) = 0;
  /// What a recorded number is now, after a wait for the GPU.
  virtual Number number(ValueId value) const = 0;

  /// Number of the segment being recorded, unique in the process.
  std::uint64_t serial() const { return serial_; }

 protected:
  Tracer() : serial_(next_serial()) {}
  ~Tracer() = default;

  /// What is recorded from now on is another segment.
  void begin_segment() { serial_ = next_serial(); }
  /// Makes it that of this thread; returns the one before.
  static Tracer* make_current(Tracer* tracer);

 private:
  static std::uint64_t next_serial();

  std::uint64_t serial_;
};

}  // namespace fuse
