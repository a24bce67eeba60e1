#pragma once

#include <stdexcept>
#include <string>

namespace fuse {

/// The one exception type of the library: a message that says what was wrong,
/// where, and what to do. Recipes end with exit code 1 on it.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A command line or an environment variable that cannot be used. Recipes end
/// with exit code 2 on it.
class UsageError : public Error {
 public:
  using Error::Error;
};

/// No host compiler can be had. The caller falls back to the interpreter.
class NoCompiler : public Error {
 public:
  using Error::Error;
};

/// A device has no memory left for what was asked.
class OutOfMemory : public Error {
 public:
  using Error::Error;
};

}  // namespace fuse
