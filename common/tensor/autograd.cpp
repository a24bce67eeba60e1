#include "fusebook/tensor/autograd.h"

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <iterator>
#include <map>
#include <string>
#include <utility>

#include "fusebook/device/allocator.h"
#include "fusebook/support/error.h"
#include "fusebook/tensor/pointwise.h"

namespace fuse {
namespace {

thread_local bool keeping_ways_back = true;

std::uint64_t next_number() {
  static std::atomic<std::uint64_t> last = 0;
  return ++last;
}

/// True if nothing else refers to the memory.
bool is_own(const Tensor& tensor) {
  return tensor.impl().use_count() == 1 &&
         tensor.impl()->storage.use_count() == 1;
}

/// Turns a tensor into a gradient of `leaf`: in separate memory, laid out like
/// the leaf.
Tensor own_grad(Tensor grad, const Tensor& leaf) {
  if (is_own(grad) && grad.strides() == leaf.strides()) return grad;
  Tensor copy = empty_like(leaf);
  copy.copy_(grad);
  return copy;
}

void add_to_leaf(const std::shared_ptr<TensorImpl>& impl, Tensor grad) {
  Tensor leaf(impl);
  const Tensor sum = leaf.grad();
  if (!sum.defined()) {
    leaf.set_grad(own_grad(std::move(grad), leaf));
  } else {
    pointwise_into(sum, {sum, grad.to(sum.dtype())},
                   [](Terms t) { return t[0] + t[1]; });
  }
}

}  // namespace

GradFn::Edge::Edge(const Tensor& input) {
  if (!wants_grad(input)) return;
  grad_fn = input.impl()->grad_fn;
  if (grad_fn == nullptr) leaf = input.impl();
}

GradFn::GradFn(const std::vector<Tensor>& inputs, Backward backward)
    : backward_(std::move(backward)), number_(next_number()) {
  check_callable(backward_, "the backward function");
  for (const Tensor& input : inputs) edges_.emplace_back(input);
}

// A node may hold the last reference to the previous one, and so on: that many
// nested destructors would overflow the stack.
GradFn::~GradFn() {
  static thread_local std::vector<std::shared_ptr<GradFn>>* dying = nullptr;
  const bool first = dying == nullptr;
  std::vector<std::shared_ptr<GradFn>> queue;
  if (first) dying = &queue;
  for (Edge& edge : edges_) {
    if (edge.grad_fn != nullptr) dying->push_back(std::move(edge.grad_fn));
  }
  if (!first) return;
  while (!queue.empty()) {
    const auto last = std::move(queue.back());
    queue.pop_back();
  }
  dying = nullptr;
}

/// One walk: nodes wait for their turn with the sum of the gradients so far.
/// Everything that uses a tensor was made after it, so the latest node is
/// complete.
class BackwardPass {
 public:
  BackwardPass(const GradFn::Edge& start, const Tensor& grad) {
    deliver(start, grad);
  }

  void run() {
    while (!waiting_.empty()) {
      auto last = waiting_.extract(std::prev(waiting_.end()));
      const std::shared_ptr<GradFn> node = last.mapped().node;
      Grads grads = node->backward_(last.mapped().grad);
      if (grads.size() != node->edges_.size()) {
        throw Error(fmt::format(
            "a backward function returned {} gradients for {} inputs",
            grads.size(), node->edges_.size()));
      }
      for (std::size_t k = 0; k < grads.size(); ++k) {
        deliver(node->edges_[k], std::move(grads[k]));
      }
    }
  }

 private:
  struct Waiting {
    std::shared_ptr<GradFn> node;
    Tensor grad;
  };

  void deliver(const GradFn::Edge& edge, Tensor grad) {
    if (!grad.defined()) return;
    if (edge.leaf != nullptr) return add_to_leaf(edge.leaf, std::move(grad));
    if (edge.grad_fn == nullptr) return;
    Waiting& at = waiting_[edge.grad_fn->number_];
    at.node = edge.grad_fn;
    // Several inputs may share one gradient, so the sum is a new tensor.
    at.grad = at.grad.defined() ? pointwise({at.grad, grad},
                                            [](Terms t) { return t[0] + t[1]; })
                                : std::move(grad);
  }

  std::map<std::uint64_t, Waiting> waiting_;
};

bool wants_grad(const Tensor& tensor) {
  return keeping_ways_back && tensor.defined() && tensor.requires_grad();
}

Tensor with_grad(const Tensor& output, const std::vector<Tensor>& inputs,
                 GradFn::Backward backward) {
  check_defined(output, "the output");
  check_callable(backward, "the backward function");
  if (std::any_of(inputs.begin(), inputs.end(), wants_grad)) {
    output.impl()->grad_fn =
        std::make_shared<GradFn>(inputs, std::move(backward));
  }
  return output;
}

Tensor passing_grad(const Tensor& copy, const Tensor& input) {
  check_defined(copy, "the copy");
  if (!wants_grad(input)) return copy;
  return with_grad(
      copy, {input},
      [dtype = input.dtype(), device = input.device()](
          const Tensor& grad) -> Grads { return {grad.to(dtype).to(device)}; });
}

void run_backward(const Tensor& from, const Tensor& grad) {
  check_defined(from);
  const GradFn::Edge start(from);
  const NoGradGuard guard;
  BackwardPass(start, grad).run();
}

NoGradGuard::NoGradGuard() : before_(std::exchange(keeping_ways_back, false)) {}

NoGradGuard::~NoGradGuard() { keeping_ways_back = before_; }

}  // namespace fuse
