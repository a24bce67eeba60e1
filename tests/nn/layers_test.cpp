#include "fusebook/nn/layers.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "fusebook/nn/functional.h"
#include "fusebook/nn/model.h"
#include "fusebook/support/error.h"
#include "support/gradients.h"
#include "support/testing.h"

using namespace fuse;
using namespace testing;

namespace {

/// A layer of one's own: a factor to learn.
struct Scale {
  Tensor factor = full({3}, 2, DType::float64, cpu_device).requires_grad_();

  Tensor operator()(const Tensor& input) const { return mul(input, factor); }
  NamedTensors named_parameters() const { return {{"factor", factor}}; }
  Scale clone() const {
    Scale copy;
    copy.factor.copy_(factor);
    return copy;
  }
  std::string name() const { return "Scale"; }
};

Sequential classifier(Generator& gen) {
  return Sequential({Linear(4, 8, gen), ReLU(), Dropout(0.5, gen),
                     Linear(8, 3, gen), LogSoftmax(-1)});
}

}  // namespace

TEST_CASE("layers compute what their functions do") {
  const Tensor x = signed_numbers({3, 4});
  CHECK(bitwise_equal(ReLU()(x), relu(x)));
  CHECK(bitwise_equal(Tanh()(x), tanh(x)));
  CHECK(bitwise_equal(Sigmoid()(x), sigmoid(x)));
  CHECK(bitwise_equal(GELU()(x), gelu(x)));
  CHECK(bitwise_equal(GELU(Gelu::tanh)(x), gelu(x, Gelu::tanh)));
  CHECK_FALSE(bitwise_equal(GELU()(x), GELU(Gelu::tanh)(x)));
  CHECK(bitwise_equal(Softmax(0)(x), softmax(x, 0)));
  CHECK(bitwise_equal(LogSoftmax(1)(x), log_softmax(x, 1)));
  CHECK(Flatten()(signed_numbers({2, 3, 4})).shape() == Shape{2, 12});
  CHECK(Flatten()(signed_numbers({2})).shape() == Shape{2, 1});
  CHECK(Flatten()(tensor(1.0)).shape() == Shape{1});
  CHECK(Flatten()(zeros({0, 3})).shape() == Shape{0, 3});
  check_gradients([](const auto& in) { return Flatten()(in[0].t()); }, {x});
}

TEST_CASE("a Sequential takes layers, functions, lambdas and Sequentials") {
  Generator gen(1);
  const Scale scale;
  const Sequential inner({Linear(3, 3, gen, true, DType::float64), relu});
  const Sequential model(
      {scale, inner, [](const Tensor& x) { return add(x, x); }, Tanh()});
  const Tensor x = signed_numbers({2, 3});
  const Tensor by_hand = inner(mul(x, scale.factor.expand({2, 3})));
  // A factor for each feature: the input has to be one sample here.
  const Tensor one = x.select(0, 0);
  CHECK(bitwise_equal(model(one),
                      tanh(add(by_hand.select(0, 0), by_hand.select(0, 0)))));
  model(one).sum().backward();
  CHECK(scale.factor.grad().defined());
  std::vector<std::string> names;
  for (const auto& [name, parameter] : model.named_parameters()) {
    names.push_back(name);
    CHECK(parameter.grad().defined());
  }
  CHECK(names ==
        std::vector<std::string>{"0.factor", "1.0.weight", "1.0.bias"});
  CHECK(model.parameters().size() == 3);
  model.zero_grad();
  CHECK_FALSE(scale.factor.grad().defined());
  const Sequential copy = model.clone();
  CHECK(bitwise_equal(copy(one), model(one)));
  Tensor(scale.factor).fill_(0);
  CHECK_FALSE(bitwise_equal(copy(one), model(one)));
}

TEST_CASE("a model goes back through all of its layers") {
  Generator gen(2);
  const Sequential model({Linear(3, 4, gen, true, DType::float64), GELU(),
                          Dropout(0.3, gen),
                          Linear(4, 4, gen, true, DType::float64), Tanh(),
                          Linear(4, 2, gen, true, DType::float64)});
  const Dropout& noise = *model.layers()[2].as<Dropout>();
  std::vector<Tensor> inputs = model.parameters();
  inputs.push_back(signed_numbers({5, 3}));
  check_gradients(
      [&](const auto& in) {
        noise.set_offset(4);  // the same mask in every call
        return model(in.back());
      },
      inputs);
}

TEST_CASE("dropout acts in training alone, with another mask in each call") {
  Generator gen(3);
  const Dropout layer(0.5, gen);
  const Tensor x = full({64}, 1);
  const Tensor first = layer(x);
  const Tensor second = layer(x);
  CHECK_FALSE(bitwise_equal(first, second));
  CHECK(bitwise_equal(first, dropout(x, 0.5, layer.seed(), 0)));
  CHECK(bitwise_equal(second, dropout(x, 0.5, layer.seed(), 1)));
  layer.eval();
  CHECK(bitwise_equal(layer(x), x));
  CHECK(layer.offset() == 2);
  layer.train();
  const Dropout copy = layer.clone();
  const Tensor third = layer(x);
  CHECK(bitwise_equal(copy(x), third));  // goes on by itself from here
  CHECK(copy.offset() == layer.offset());
  layer.set_offset(0);
  CHECK(bitwise_equal(layer(x), first));
  CHECK(copy.offset() == 3);
  Generator same(3);
  CHECK(Dropout(0.5, same).seed() == layer.seed());
  CHECK(Dropout(0.5, same).seed() != layer.seed());
  CHECK(message_of<Error>([&] { Dropout(-0.1, gen); }) ==
        "Dropout: the probability must be from 0 to 1, not -0.1");
}

TEST_CASE("train and eval reach the layers of a model") {
  Generator gen(4);
  const Sequential inner({Dropout(0.5, gen)});
  const Sequential model({classifier(gen), inner});
  const Tensor x = full({6, 4}, 1);
  CHECK_FALSE(bitwise_equal(model(x), model(x)));
  model.eval();
  CHECK(bitwise_equal(model(x), model(x)));
  model.train();
  CHECK_FALSE(bitwise_equal(model(x), model(x)));
}

TEST_CASE("layers that do not fit are named") {
  Generator gen(5);
  CHECK(message_of<Error>([&] {
          Sequential({Linear(4, 3, gen), ReLU(), Dropout(0.1, gen),
                      Linear(4, 2, gen)});
        }) ==
        "Sequential: layer 3, Linear(4, 2) of float32 cannot take the output "
        "of layer 0, Linear(4, 3) of float32");
  // What a function does to the shape nobody knows.
  const Sequential model(
      {Linear(4, 3, gen),
       [](const Tensor& x) { return x.contiguous().view({-1, 6}); },
       Linear(6, 2, gen)});
  CHECK(model(full({2, 4}, 1)).shape() == Shape{1, 2});
  CHECK(message_of<Error>([&] { classifier(gen)(full({2, 5}, 1)); }) ==
        "layer 0, Linear(4, 8): the input has shape [2, 5] and dtype float32; "
        "expected shape [4] or [batch, 4]");
  CHECK(classifier(gen).layers()[2].name() == "Dropout(0.5)");
  CHECK(model.layers()[1].name() == "a function");
  CHECK(model.layers()[1].as<Linear>() == nullptr);
}

TEST_CASE("frozen layers get no gradient, and a clone is frozen too") {
  Generator gen(6);
  const Sequential model = classifier(gen);
  model.parameters()[0].requires_grad_(false);
  const Sequential copy = model.clone();
  for (const Sequential& each : {model, copy}) {
    each(full({2, 4}, 1)).sum().backward();
    CHECK_FALSE(each.parameters()[0].grad().defined());
    CHECK(each.parameters()[1].grad().defined());
    CHECK(each.parameters()[3].requires_grad());
    CHECK(each.parameters()[3].impl()->grad_fn == nullptr);
  }
}
