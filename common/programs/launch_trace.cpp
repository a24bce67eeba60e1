#include "fusebook/programs/launch_trace.h"

namespace fuse {
namespace {

thread_local LaunchTrace* current_trace = nullptr;

}  // namespace

LaunchTrace::LaunchTrace() : previous_(current_trace) { current_trace = this; }

LaunchTrace::~LaunchTrace() { current_trace = previous_; }

LaunchTrace* LaunchTrace::current() { return current_trace; }

}  // namespace fuse
