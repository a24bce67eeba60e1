#pragma once

#include <string>

namespace fuse {

/// Where, with what and when a run was made.
struct Provenance {
  std::string device;
  std::string architecture;  ///< of a GPU: "sm_90"; else empty
  int threads = 1;
  std::string compiler;
  std::string system;
  std::string date;
};

/// What this machine and build say of a run on the default device. Throws UsageError when SOURCE_DATE_EPOCH
/// is set to something else than seconds since 1970.
Provenance current_provenance();

/// Today's date in UTC as "2026-01-31", or that of SOURCE_DATE_EPOCH.
std::string current_date();

}  // namespace fuse
