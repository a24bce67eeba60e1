// How long a step takes whose gradients are new tensors each time: by LibTorch's
// Adam, by ours over its tensors, and by ours over its own. Least of many steps,
// in turn; a ratio says more than a time.
#include <fusebook/fusebook.h>
#include <fusebook/libtorch/all.h>
#include <torch/torch.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <limits>
#include <vector>

namespace {

double microseconds_of(const std::function<void()>& call) {
  const auto start = std::chrono::steady_clock::now();
  call();
  const std::chrono::duration<double, std::micro> time =
      std::chrono::steady_clock::now() - start;
  return time.count();
}

std::vector<torch::Tensor> make_params(int count,
                                       const torch::IntArrayRef& sizes) {
  std::vector<torch::Tensor> made;
  for (int i = 0; i < count; ++i) made.push_back(torch::full(sizes, 1.0));
  return made;
}

// Three sets in turn, so that every address is another than the step before.
struct Grads {
  explicit Grads(const std::vector<torch::Tensor>& params) {
    for (auto& set : sets) {
      for (const auto& each : params)
        set.push_back(torch::full_like(each, 0.5));
    }
  }
  const std::vector<torch::Tensor>& next() { return sets[++turn % 3]; }
  std::vector<torch::Tensor> sets[3];
  int turn = 0;
};

void give(std::vector<torch::Tensor>& params,
          const std::vector<torch::Tensor>& grads) {
  for (std::size_t i = 0; i < params.size(); ++i) {
    params[i].mutable_grad() = grads[i];
  }
}

void measure(const char* what, int count, const torch::IntArrayRef& sizes,
             int rounds) {
  auto theirs = make_params(count, sizes);
  auto ours = make_params(count, sizes);
  auto plain = make_params(count, sizes);
  Grads grads(theirs);
  torch::optim::Adam their_adam(theirs);
  fuse::libtorch::Adam our_adam(ours);
  std::vector<fuse::Tensor> views;
  for (const auto& each : plain) views.push_back(fuse::libtorch::view(each));
  fuse::Adam plain_adam(views);
  std::vector<const void*> addresses(views.size());
  auto plain_step = fuse::compile(
      [&] { plain_adam.step(fuse::GradientAddresses{addresses, {}}); });

  double best[3];
  std::fill(best, best + 3, std::numeric_limits<double>::infinity());
  for (int i = 0; i < rounds; ++i) {
    const auto& now = grads.next();
    give(theirs, now);
    give(ours, now);
    for (std::size_t k = 0; k < now.size(); ++k) {
      addresses[k] = now[k].data_ptr();
    }
    best[0] = std::min(best[0], microseconds_of([&] { their_adam.step(); }));
    best[1] = std::min(best[1], microseconds_of([&] { our_adam.step(); }));
    best[2] = std::min(best[2], microseconds_of([&] { plain_step(); }));
  }
  std::printf(
      "%-16s torch::optim %9.1f us  ours %8.1f us  own tensors %8.1f us"
      "  (%.1f x, %.3f of own)  %d launches, %d compilations\n",
      what, best[0], best[1], best[2], best[0] / best[1], best[1] / best[2],
      int(our_adam.counters().launches), int(our_adam.counters().compilations));
}

}  // namespace

int main(int argc, char** argv) {
  torch::set_num_threads(argc > 1 ? std::atoi(argv[1]) : 2);
  measure("1,000 x 64", 1000, {64}, 300);
  measure("10 x 1024 x 1024", 10, {1024, 1024}, 40);
}
