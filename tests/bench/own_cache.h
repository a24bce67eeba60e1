#pragma once

#include <cstdlib>
#include <optional>
#include <string>

namespace fuse::bench {

/// The disk cache of kernels is elsewhere, or "off", as long as this lives.
class OwnCache {
 public:
  explicit OwnCache(const std::string& path) {
    const char* const value = std::getenv(name);
    if (value != nullptr) before_ = value;
    setenv(name, path.c_str(), 1);
  }
  ~OwnCache() {
    if (before_) {
      setenv(name, before_->c_str(), 1);
    } else {
      unsetenv(name);
    }
  }
  OwnCache(const OwnCache&) = delete;
  OwnCache& operator=(const OwnCache&) = delete;

 private:
  static constexpr const char* name = "FUSEBOOK_CACHE_DIR";
  std::optional<std::string> before_;
};

}  // namespace fuse::bench
