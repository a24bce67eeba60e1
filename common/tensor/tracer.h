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

/// What lists and numbers need from the recording they are part of.
class Tracer {
 public:
  Tracer(const Tracer&) = delete;
  Tracer& operator=(const Tracer&) = delete;

  /// The recording of this thread, or nullptr outside `compile`.
  static Tracer* current();

  /// Executes what was recorded so far, because of an access from outside.
  virtual void flush(const std::string& why) = 0;
  /// True if an operation of the recording uses this list.
  virtual bool uses(const ListImpl& list) const = 0;

  virtual ValueId record_scalar(OpCode op,
                                std::span<const Scalar* const> operands,
                                std::source_location place) = 0;
  /// True for a number that the kernel will read, or compute from one it reads:
  /// its value is not known here.
  virtual bool loads(const Scalar& scalar) const = 0;
  /// Where such a number will be stored if the host needs it.
  virtual std::shared_ptr<LaterNumber> later(ValueId value) = 0;
  /// The current value of a recorded number. Waits for the GPU.
  virtual Number number(ValueId value) const = 0;
  /// True for a recorded number that is not known before the kernel has run.
  virtual bool is_computed_later(ValueId value) const = 0;

  /// Serial number of the current segment, unique in the process.
  std::uint64_t serial() const { return serial_; }

 protected:
  Tracer() : serial_(next_serial()) {}
  ~Tracer() = default;

  /// Starts a new segment.
  void begin_segment() { serial_ = next_serial(); }
  /// Makes it the recording of this thread; returns the previous one.
  static Tracer* make_current(Tracer* tracer);

 private:
  static std::uint64_t next_serial();

  std::uint64_t serial_;
};

}  // namespace fuse
