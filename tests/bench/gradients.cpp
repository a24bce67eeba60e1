#include "bench/gradients.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <memory>
#include <numeric>
#include <utility>

#include "bench/case_model.h"
#include "bench/paused_clock.h"
#include "bench/reading.h"
#include "fusebook/compile/compile.h"
#include "fusebook/device/allocator.h"
#include "fusebook/optim/adam.h"

namespace fuse::bench {
namespace {

using Tensors = std::vector<Tensor>;

// As many sets of gradients are alive at once: the addresses of one do not come
// back before that many steps.
constexpr std::size_t sets_alive = 8;

void set_gradients(const Tensors& params, const Tensors& grads) {
  for (std::size_t i = 0; i < params.size(); ++i) {
    Tensor(params[i]).set_grad(grads[i]);
  }
}

Tensors gradients_of(const Tensors& params) {
  Tensors grads;
  for (const Tensor& param : params) grads.push_back(param.grad());
  return grads;
}

Tensors copies(const Tensors& tensors) {
  Tensors made;
  made.reserve(tensors.size());
  for (const Tensor& tensor : tensors) made.push_back(tensor.clone());
  return made;
}

// Makes sets of gradients, each where none of the last ones lies.
class NewGradients {
 public:
  explicit NewGradients(Tensors like) : like_(std::move(like)) {
    for (std::size_t i = 0; i < sets_alive; ++i) next();
  }
  const Tensors& next() {
    alive_.push_back(copies(like_));
    if (alive_.size() > sets_alive) alive_.pop_front();
    return alive_.back();
  }

 private:
  Tensors like_;
  std::deque<Tensors> alive_;
};

// Memory that another library owns, with room for several sets of gradients in a
// row: set after set begins one tensor further on.
class ForeignMemory {
 public:
  explicit ForeignMemory(const Tensors& like) : like_(like) {
    for (const Tensor& tensor : like_) {
      room_ = std::max(room_, (tensor.numel() + 15) / 16 * 16);
    }
    memory_.assign(std::size_t(room_) * (like_.size() + sets_alive * 2), 0.5F);
  }
  // The set that begins `shift` tensors after the first one.
  Tensors set(std::size_t shift) {
    Tensors made;
    made.reserve(like_.size());
    for (std::size_t i = 0; i < like_.size(); ++i) {
      made.push_back(from_blob(
          memory_.data() + std::size_t(room_) * (i + shift), like_[i].shape()));
    }
    return made;
  }
  Tensors next() { return set(steps_++ % (sets_alive * 2)); }
  // The same, of which only the addresses are told.
  void next(std::vector<const void*>& addresses) {
    const std::size_t shift = steps_++ % (sets_alive * 2);
    addresses.clear();
    for (std::size_t i = 0; i < like_.size(); ++i) {
      addresses.push_back(memory_.data() + std::size_t(room_) * (i + shift));
    }
  }

 private:
  Tensors like_;
  std::int64_t room_ = 0;
  std::size_t steps_ = 0;
  std::vector<float> memory_;
};

// An optimizer over a copy of the model, and its compiled step.
struct Training {
  explicit Training(Tensors copy)
      : params(std::move(copy)), adam(std::make_shared<Adam>(params)) {}
  Tensors params;
  std::shared_ptr<Adam> adam;
};

using Prepare = std::function<void(const Tensors& params)>;

Loop loop_of(const char* name, const CaseModel& model,
             const std::function<Prepare(const Tensors& params)>& make) {
  const Training training(model.copy());
  const Prepare prepare = make(training.params);
  auto step = compile([adam = training.adam] { adam->step(); });
  step();
  return {name, [=, params = training.params] { prepare(params); }, step};
}

Prepare nothing(const Tensors& /*params*/) {
  return [](const Tensors&) {};
}

// Everybody's loop: zero_grad frees them all, and backward, which begins with the
// last layer, makes them anew wherever the allocator puts them.
Prepare zero_grad_and_backward(const Tensors& params) {
  auto source = std::make_shared<Tensors>(copies(gradients_of(params)));
  return [source](const Tensors& all) {
    for (const Tensor& param : all) Tensor(param).set_grad({});
    for (std::size_t i = all.size(); i-- > 0;) {
      Tensor(all[i]).set_grad((*source)[i].clone());
    }
  };
}

Prepare all_new(const Tensors& params) {
  auto made = std::make_shared<NewGradients>(gradients_of(params));
  return [made](const Tensors& all) { set_gradients(all, made->next()); };
}

Prepare one_new(const Tensors& /*params*/) {
  auto alive = std::make_shared<std::deque<Tensor>>();
  auto steps = std::make_shared<std::size_t>(0);
  return [=](const Tensors& all) {
    Tensor param = all[(*steps)++ * 17 % all.size()];
    alive->push_back(param.grad());
    param.set_grad(param.grad().clone());
    if (alive->size() > sets_alive) alive->pop_front();
  };
}

Prepare two_sets(const Tensors& params) {
  const Tensors first = gradients_of(params);
  const Tensors second = copies(first);
  auto steps = std::make_shared<std::size_t>(0);
  return [=](const Tensors& all) {
    set_gradients(all, (*steps)++ % 2 == 0 ? second : first);
  };
}

// Every third parameter takes part in a step, and the rest in the next one.
Prepare some_in_turn(const Tensors& params) {
  auto made = std::make_shared<NewGradients>(gradients_of(params));
  auto steps = std::make_shared<std::size_t>(0);
  return [=](const Tensors& all) {
    const Tensors& grads = made->next();
    const bool thirds = (*steps)++ % 2 == 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const bool has = (i % 3 == 0) == thirds;
      Tensor(all[i]).set_grad(has ? grads[i] : Tensor());
    }
  };
}

Prepare foreign_in_place(const Tensors& params) {
  auto memory = std::make_shared<ForeignMemory>(gradients_of(params));
  return [=](const Tensors& all) { set_gradients(all, memory->set(0)); };
}

Prepare foreign_new(const Tensors& params) {
  auto memory = std::make_shared<ForeignMemory>(gradients_of(params));
  return [=](const Tensors& all) { set_gradients(all, memory->next()); };
}

Prepare foreign_two_sets(const Tensors& params) {
  auto memory = std::make_shared<ForeignMemory>(gradients_of(params));
  auto steps = std::make_shared<std::size_t>(0);
  return [=](const Tensors& all) {
    set_gradients(all, memory->set((*steps)++ % 2 * sets_alive));
  };
}

// The step is given the addresses, new ones each time.
Loop by_address(const CaseModel& model) {
  const Training training(model.copy());
  auto memory = std::make_shared<ForeignMemory>(gradients_of(training.params));
  auto addresses = std::make_shared<std::vector<const void*>>();
  auto step =
      compile([=, adam = training.adam] { adam->step({.grads = *addresses}); });
  memory->next(*addresses);
  step();
  return {"addresses, all new", [=] { memory->next(*addresses); }, step};
}

constexpr const char* bare = "bare kernel";

// The kernel alone, and once more where gradients of others were made in front
// of it: what a step would take to which new ones cost nothing.
void add_bare(std::vector<Loop>& loops, const CaseModel& model) {
  const Training training(model.copy());
  auto step = compile([adam = training.adam] { adam->step(); });
  step();
  const auto again = [step]() mutable { step.relaunch(); };
  loops.push_back({bare, [] {}, again});
  const Tensors others = model.copy();
  const Prepare prepare = all_new(others);
  loops.push_back(
      {"bare kernel, caches used by others", [=] { prepare(others); }, again});
}

std::vector<Loop> loops_of(const CaseModel& model) {
  std::vector<Loop> loops;
  add_bare(loops, model);
  loops.push_back(loop_of("kept", model, nothing));
  loops.push_back(
      loop_of("zero_grad, backward", model, zero_grad_and_backward));
  loops.push_back(loop_of("all new", model, all_new));
  loops.push_back(loop_of("one new", model, one_new));
  loops.push_back(loop_of("two sets in turn", model, two_sets));
  loops.push_back(loop_of("some in turn", model, some_in_turn));
  loops.push_back(loop_of("foreign, in place", model, foreign_in_place));
  loops.push_back(loop_of("foreign, all new", model, foreign_new));
  loops.push_back(
      loop_of("foreign, two sets in turn", model, foreign_two_sets));
  loops.push_back(by_address(model));
  return loops;
}

// Of each loop parameters and two averages; then the sets of gradients.
void require_memory_for(const Case& wanted) {
  constexpr std::int64_t arrays = 12 * 3 + 2 + 3 * (sets_alive + 1) + 8;
  const std::int64_t elements = std::accumulate(
      wanted.sizes.begin(), wanted.sizes.end(), std::int64_t(0));
  require_memory(elements * arrays * std::int64_t(sizeof(float)));
}

}  // namespace

void measure_gradients(const Case& wanted) {
  require_memory_for(wanted);
  const CaseModel model(wanted);
  const std::vector<Loop> loops = loops_of(model);
  const auto times = measure_loops(loops);
  for (std::size_t i = 0; i < loops.size(); ++i) {
    tell(
        {"gradients", wanted.name, loops[i].name, times[i], 0, bare, times[0]});
  }
}

}  // namespace fuse::bench
