// Steps for programs that time them beside others', as C functions: of Adam by
// LibTorch, by ours over LibTorch's tensors, and by ours over tensors of our own; of
// our AdamW with its weights and states stored in several ways. in_turns.py calls
// them.
#include <fusebook/fusebook.h>
#include <fusebook/libtorch/all.h>
#include <fusebook/support/machine.h>
#include <torch/torch.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace {

using Sizes = std::vector<std::int64_t>;

class Steps {
 public:
  virtual ~Steps() = default;
  Steps() = default;
  Steps(const Steps&) = delete;
  Steps& operator=(const Steps&) = delete;

  /// The gradients of the next step, in the order of the parameters.
  virtual void give(void* const* grads) = 0;
  virtual void step() = 0;
  virtual std::int64_t launches() const { return 0; }
  virtual std::int64_t compilations() const { return 0; }
  virtual std::int64_t bytes() const { return 0; }
};

std::vector<torch::Tensor> make_params(const Sizes& sizes) {
  std::vector<torch::Tensor> made;
  for (const auto size : sizes) made.push_back(torch::rand({size}));
  return made;
}

template <class Adam>
class OverTorch : public Steps {
 public:
  explicit OverTorch(const Sizes& sizes)
      : params_(make_params(sizes)), adam_(params_) {}

  void give(void* const* grads) override {
    for (std::size_t i = 0; i < params_.size(); ++i) {
      params_[i].mutable_grad() =
          torch::from_blob(grads[i], params_[i].sizes());
    }
  }
  void step() override { adam_.step(); }
  std::int64_t launches() const override {
    if constexpr (requires { adam_.counters(); }) {
      return adam_.counters().launches;
    }
    return 0;
  }
  std::int64_t compilations() const override {
    if constexpr (requires { adam_.counters(); }) {
      return adam_.counters().compilations;
    }
    return 0;
  }

 private:
  std::vector<torch::Tensor> params_;
  Adam adam_;
};

std::vector<fuse::Tensor> make_own(const Sizes& sizes, fuse::DType dtype) {
  std::vector<fuse::Tensor> made;
  for (const auto size : sizes) made.push_back(fuse::zeros({size}, dtype));
  return made;
}

template <class Optimizer>
class OverOwn : public Steps {
 public:
  explicit OverOwn(const Sizes& sizes, fuse::DType dtype = fuse::float32)
      : addresses_(sizes.size()), optimizer_(make_own(sizes, dtype)) {}

  Optimizer& optimizer() { return optimizer_; }

  void give(void* const* grads) override {
    addresses_.assign(grads, grads + addresses_.size());
  }
  void step() override {
    const auto before = step_.counters().bytes_moved;
    step_();
    bytes_ = step_.counters().bytes_moved - before;
  }
  std::int64_t launches() const override { return step_.counters().launches; }
  std::int64_t compilations() const override {
    return step_.counters().compilations;
  }
  std::int64_t bytes() const override { return bytes_; }

 private:
  std::vector<const void*> addresses_;
  Optimizer optimizer_;
  fuse::Compiled<std::function<void()>> step_ =
      fuse::compile(std::function<void()>([this] {
        optimizer_.step(fuse::GradientAddresses{addresses_, {}});
      }));
  std::int64_t bytes_ = 0;
};

// With weights and states stored as `storage` says.
std::unique_ptr<Steps> stored(const std::string& storage, const Sizes& sizes) {
  const bool plain = storage == "float32" || storage == "8-bit states";
  auto made = std::make_unique<OverOwn<fuse::AdamW>>(
      sizes, plain ? fuse::float32 : fuse::bfloat16);
  auto& adamw = made->optimizer();
  if (storage == "split, 8-bit states") adamw.use_split_masters(true);
  if (storage == "stochastic, 8-bit states")
    adamw.use_stochastic_rounding(true);
  adamw.use_8bit_states(storage != "float32");
  return made;
}

std::unique_ptr<Steps> made(const std::string& kind, const Sizes& sizes) {
  if (kind == "torch")
    return std::make_unique<OverTorch<torch::optim::Adam>>(sizes);
  if (kind == "adapter") {
    return std::make_unique<OverTorch<fuse::libtorch::Adam>>(sizes);
  }
  if (kind == "own") return std::make_unique<OverOwn<fuse::Adam>>(sizes);
  return stored(kind.substr(std::string("own ").size()), sizes);
}

}  // namespace

#define EXPORTED extern "C" __attribute__((visibility("default")))

// `kind` is torch, adapter, own, or own and a storage: float32, 8-bit states, split,
// 8-bit states, or stochastic, 8-bit states. Belongs to the caller: free_steps.
EXPORTED void* make_steps(const char* kind, std::int64_t count,
                          const std::int64_t* sizes) noexcept {
  return made(kind, Sizes(sizes, sizes + count)).release();
}

EXPORTED void free_steps(void* steps) noexcept {
  delete static_cast<Steps*>(steps);
}

// How long one step takes with these gradients.
EXPORTED double seconds_of_step(void* steps, void* const* grads) noexcept {
  auto& some = *static_cast<Steps*>(steps);
  some.give(grads);
  const auto start = std::chrono::steady_clock::now();
  some.step();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
      .count();
}

EXPORTED std::int64_t launches_of(void* steps) noexcept {
  return static_cast<Steps*>(steps)->launches();
}

EXPORTED std::int64_t compilations_of(void* steps) noexcept {
  return static_cast<Steps*>(steps)->compilations();
}

// What the last step read and wrote; 0 where nobody counts it.
EXPORTED std::int64_t bytes_of_step(void* steps) noexcept {
  return static_cast<Steps*>(steps)->bytes();
}

EXPORTED void set_threads(int count) noexcept {
  torch::set_num_threads(count);
  fuse::set_thread_count(count);
}

EXPORTED const char* cpu() noexcept {
  static const std::string name = fuse::cpu_name();
  return name.c_str();
}

EXPORTED const char* compiler() noexcept {
#if defined(__clang__)
  return __VERSION__;  // has its name
#else
  return "g++ " __VERSION__;
#endif
}

EXPORTED const char* operating_system() noexcept {
  static const std::string name = fuse::system_name();
  return name.c_str();
}
