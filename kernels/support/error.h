#pragma once

#include <stdexcept>
#include <string>

namespace fuse {

/// The base of all exceptions of the library: a message that says what was
/// wrong, where, and what to do. Recipes exit with code 1 on it.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// An invalid command line or environment variable. Recipes exit with code 2 on
/// it.
class UsageError : public Error {
 public:
  using Error::Error;
};

/// No host compiler is available. The caller falls back to the interpreter.
class NoCompiler : public Error {
 public:
  using Error::Error;
};

/// A device has too little memory left for a request.
class OutOfMemory : public Error {
 public:
  using Error::Error;
};

}  // namespace fuse
