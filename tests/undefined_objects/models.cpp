#include <doctest/doctest.h>

#include "rows.h"

using namespace fuse;

namespace undefined_objects {
namespace {

const Tensor input = tensor({1, 2});

Generator& generator() {
  static Generator one(1);
  return one;
}
Linear gone_linear() { return left_of(Linear(2, 2, generator())); }
Dropout gone_dropout() { return left_of(Dropout(0.5, generator())); }
Layer gone_layer() { return left_of(Layer(ReLU())); }
Sequential gone_model() {
  return left_of(Sequential({Linear(2, 2, generator())}));
}

}  // namespace

Rows rows_of_models() {
  const auto none = undefined;
  return {
      {"Linear::operator()", [] { use(gone_linear()(input)); }},
      {"Linear::operator()", [=] { use(Linear(2, 2, generator())(none())); },
       "Linear(2, 2): the input is undefined"},
      {"Linear::weight", [] { use(gone_linear().weight()); }},
      {"Linear::bias", [] { use(gone_linear().bias()); }},
      {"Linear::in_features", [] { use(gone_linear().in_features()); }},
      {"Linear::out_features", [] { use(gone_linear().out_features()); }},
      {"Linear::parameters", [] { use(gone_linear().parameters()); }},
      {"Linear::named_parameters",
       [] { use(gone_linear().named_parameters()); }},
      {"Linear::clone", [] { use(gone_linear().clone()); }},
      {"Linear::name", [] { use(gone_linear().name()); }},
      {"Linear::problem_with", [] { use(gone_linear().problem_with(input)); }},
      answer("Linear::problem_with",
             [=] {
               CHECK(Linear(2, 2, generator()).problem_with(none()) ==
                     "the input is undefined");
             }),

      {"Sequential::Sequential",
       [] { const Sequential made({gone_linear(), gone_linear()}); },
       "Linear::out_features: "},
      {"Sequential::Sequential",
       [] { const Sequential made(std::vector<Layer>{gone_layer()}); },
       "Layer::as: "},
      answer("Sequential::operator()",
             [] { CHECK(gone_model()(input).impl() == input.impl()); }),
      {"Sequential::operator()",
       [=] { use(Sequential({Linear(2, 2, generator())})(none())); },
       "Linear(2, 2): the input is undefined"},
      {"Sequential::operator()",
       [=] { use(Sequential({Layer(ReLU())})(none())); },
       "relu: the input is undefined"},
      answer("Sequential::layers",
             [] { CHECK(gone_model().layers().empty()); }),
      answer("Sequential::parameters",
             [] { CHECK(gone_model().parameters().empty()); }),
      answer("Sequential::named_parameters",
             [] { CHECK(gone_model().named_parameters().empty()); }),
      answer("Sequential::zero_grad", [] { gone_model().zero_grad(); }),
      answer("Sequential::train", [] { gone_model().train(); }),
      answer("Sequential::eval", [] { gone_model().eval(); }),
      answer("Sequential::clone",
             [] { CHECK(gone_model().clone().layers().empty()); }),

      {"Layer::Layer",
       [] {
         const Layer made(static_cast<Tensor (*)(const Tensor&)>(nullptr));
       }},
      {"Layer::Layer",
       [] { const Layer made{std::function<Tensor(const Tensor&)>()}; }},
      {"Layer::operator()", [] { use(gone_layer()(input)); }},
      {"Layer::named_parameters", [] { use(gone_layer().named_parameters()); }},
      {"Layer::train", [] { gone_layer().train(true); }},
      {"Layer::clone", [] { use(gone_layer().clone()); }},
      {"Layer::name", [] { use(gone_layer().name()); }},
      {"Layer::problem_with", [] { use(gone_layer().problem_with(input)); }},
      {"Layer::as", [] { use(gone_layer().as<ReLU>()); }},

      {"Dropout::operator()", [] { use(gone_dropout()(input)); }},
      {"Dropout::operator()", [=] { use(Dropout(0.5, generator())(none())); }},
      {"Dropout::operator()",
       [=] {
         const Dropout used(0.5, generator());
         used.eval();
         use(used(none()));
       }},
      {"Dropout::train", [] { gone_dropout().train(); }},
      {"Dropout::eval", [] { gone_dropout().eval(); }},
      {"Dropout::seed", [] { use(gone_dropout().seed()); }},
      {"Dropout::offset", [] { use(gone_dropout().offset()); }},
      {"Dropout::set_offset", [] { gone_dropout().set_offset(1); }},
      {"Dropout::clone", [] { use(gone_dropout().clone()); }},
      {"Dropout::name", [] { use(gone_dropout().name()); }},

      // These hold no tensor: whatever was moved from goes on as before.
      {"ReLU::operator()", [=] { use(left_of(ReLU())(none())); }, "relu: "},
      {"Tanh::operator()", [=] { use(left_of(Tanh())(none())); }, "tanh: "},
      {"Sigmoid::operator()", [=] { use(left_of(Sigmoid())(none())); },
       "sigmoid: "},
      {"GELU::operator()", [=] { use(left_of(GELU())(none())); }, "gelu: "},
      {"Softmax::operator()", [=] { use(left_of(Softmax(0))(none())); },
       "softmax: "},
      {"LogSoftmax::operator()", [=] { use(left_of(LogSoftmax(0))(none())); },
       "log_softmax: "},
      {"Flatten::operator()", [=] { use(left_of(Flatten())(none())); }},
      answer("ReLU::name", [] { CHECK(left_of(ReLU()).name() == "ReLU()"); }),
      answer("Tanh::name", [] { CHECK(left_of(Tanh()).name() == "Tanh()"); }),
      answer("Sigmoid::name",
             [] { CHECK(left_of(Sigmoid()).name() == "Sigmoid()"); }),
      answer("GELU::name", [] { CHECK(left_of(GELU()).name() == "GELU()"); }),
      answer("Softmax::name",
             [] { CHECK(left_of(Softmax(0)).name() == "Softmax(0)"); }),
      answer("LogSoftmax::name",
             [] { CHECK(left_of(LogSoftmax(0)).name() == "LogSoftmax(0)"); }),
      answer("Flatten::name",
             [] { CHECK(left_of(Flatten()).name() == "Flatten()"); }),
  };
}

}  // namespace undefined_objects
