#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>
#include <torch/torch.h>

int main(int argc, char** argv) {
  torch::set_num_threads(1);  // more would wait for each other
  return doctest::Context(argc, argv).run();
}
