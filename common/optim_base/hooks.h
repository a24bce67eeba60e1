#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "fusebook/support/undefined.h"

namespace fuse {

class Optimizer;

/// Functions called at every step, in the order they were registered.
class StepHooks {
 public:
  using Hook = std::function<void(Optimizer&)>;

  /// Throws Error for an empty function.
  std::uint64_t add(Hook hook) {
    check_callable(hook, "the hook");
    hooks_.push_back({++last_, std::make_shared<Hook>(std::move(hook))});
    return last_;
  }
  void remove(std::uint64_t id) {
    std::erase_if(hooks_, [&](const Named& each) { return each.id == id; });
  }
  /// A hook may add other hooks or remove itself.
  void call(Optimizer& optimizer) const {
    for (std::size_t i = 0; i < hooks_.size();) {
      const Named now = hooks_[i];
      (*now.hook)(optimizer);
      if (i < hooks_.size() && hooks_[i].id == now.id) ++i;
    }
  }

 private:
  struct Named {
    std::uint64_t id;
    std::shared_ptr<Hook> hook;
  };

  std::vector<Named> hooks_;
  std::uint64_t last_ = 0;
};

/// Removes a hook, as in torch; may outlive the optimizer.
class RemovableHandle {
 public:
  RemovableHandle(const std::shared_ptr<StepHooks>& hooks, std::uint64_t id)
      : hooks_(hooks), id_(id) {}
  /// Removes the hook; a second call does nothing.
  void remove() const {
    if (const auto hooks = hooks_.lock()) hooks->remove(id_);
  }

 private:
  std::weak_ptr<StepHooks> hooks_;
  std::uint64_t id_;
};

}  // namespace fuse
