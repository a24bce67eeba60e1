// A model, a loss and a schedule of LibTorch. Beside a program that uses
// torch::optim::Adam, one line differs: the optimizer's.
#include <fusebook/libtorch/all.h>
#include <torch/torch.h>

#include <cstdio>

int main() {
  torch::manual_seed(0);
  torch::nn::Sequential model(torch::nn::Linear(1, 16), torch::nn::Tanh(),
                              torch::nn::Linear(16, 1));
  const auto x = torch::linspace(-2, 2, 64).unsqueeze(1);
  const auto y = torch::sin(2 * x);

  fuse::libtorch::Adam adam(model->parameters(),
                            torch::optim::AdamOptions(0.02));
  torch::optim::StepLR decay(adam, 100, 0.5);
  torch::Tensor loss;
  for (int step = 0; step < 300; ++step) {
    adam.zero_grad();
    loss = torch::mse_loss(model->forward(x), y);
    loss.backward();
    adam.step();
    decay.step();
  }

  std::printf("the fit is %s\n", loss.item<float>() < 0.01F ? "good" : "bad");
  std::printf("%d launches, %d recompiles\n", int(adam.counters().launches),
              int(adam.counters().recompiles));
}
