#include <doctest/doctest.h>

#include "fusebook/dlpack/dlpack.h"
#include "fusebook/nn/matmul.h"
#include "fusebook/tensor/move_tensors.h"
#include "fusebook/tensor/pointwise.h"
#include "rows.h"

using namespace fuse;

namespace undefined_objects {
namespace {

const Tensor one = tensor(1.0);
std::vector<Tensor> nothing_in_it() { return {undefined()}; }

}  // namespace

Rows rows_of_tensors() {
  const auto none = undefined;
  return {
      answer("Tensor::Tensor", [] { CHECK(!Tensor(nullptr).defined()); }),
      answer("Tensor::from_memory",
             [] { CHECK(Tensor::from_memory(nullptr, {0}).numel() == 0); }),
      {"to_dlpack", [=] { use(to_dlpack(none())); }},
      {"to_dlpack_unversioned", [=] { use(to_dlpack_unversioned(none())); }},
      {"codes_to_dlpack", [=] { use(codes_to_dlpack(none())); }},
      {"codes_to_dlpack_unversioned",
       [=] { use(codes_to_dlpack_unversioned(none())); }},
      {"flatten_", [] { use(flatten_(nothing_in_it())); }},
      {"check_apart", [] { check_apart(nothing_in_it(), "here"); },
       "Tensor::numel: "},
      answer("Tensor::defined", [=] { CHECK(!none().defined()); }),
      answer("Tensor::impl", [=] { CHECK(none().impl() == nullptr); }),
      {"Tensor::shape", [=] { use(none().shape()); }},
      {"Tensor::strides", [=] { use(none().strides()); }},
      {"Tensor::is_contiguous", [=] { use(none().is_contiguous()); }},
      {"Tensor::dim", [=] { use(none().dim()); }},
      {"Tensor::numel", [=] { use(none().numel()); }},
      {"Tensor::dtype", [=] { use(none().dtype()); }},
      {"Tensor::device", [=] { use(none().device()); }},
      {"Tensor::nbytes", [=] { use(none().nbytes()); }},
      {"Tensor::data", [=] { use(none().data<float>()); }},
      {"Tensor::data",
       [=] {
         const Tensor left = none();
         use(left.data<double>());
       }},
      {"Tensor::address", [=] { use(none().address(true)); }},
      {"Tensor::raw_data", [=] { use(none().raw_data()); }},
      {"Tensor::item", [=] { use(none().item()); }},
      {"Tensor::to_vector", [=] { use(none().to_vector()); }},
      {"Tensor::transpose", [=] { use(none().transpose(0, 1)); }},
      {"Tensor::t", [=] { use(none().t()); }},
      {"Tensor::permute", [=] { use(none().permute({})); }},
      {"Tensor::narrow", [=] { use(none().narrow(0, 0, 1)); }},
      {"Tensor::select", [=] { use(none().select(0, 0)); }},
      {"Tensor::slice", [=] { use(none().slice(0, 0, 1)); }},
      {"Tensor::view", [=] { use(none().view({})); }},
      {"Tensor::expand", [=] { use(none().expand({2})); }},
      {"Tensor::contiguous", [=] { use(none().contiguous()); }},
      {"Tensor::clone", [=] { use(none().clone()); }},
      {"Tensor::to", [=] { use(none().to(float64)); }},
      {"Tensor::to", [=] { use(none().to(cpu_device)); }},
      {"Tensor::cpu", [=] { use(none().cpu()); }},
      {"Tensor::copy_", [=] { none().copy_(one); }},
      {"Tensor::copy_", [=] { Tensor(one).copy_(none()); }},
      {"Tensor::fill_", [=] { none().fill_(1); }},
      {"Tensor::requires_grad", [=] { use(none().requires_grad()); }},
      {"Tensor::requires_grad_", [=] { none().requires_grad_(); }},
      {"Tensor::detach", [=] { use(none().detach()); }},
      {"Tensor::set_data", [=] { none().set_data(one); }},
      {"Tensor::set_data", [=] { tensor(1.0).set_data(none()); }},
      {"Tensor::grad", [=] { use(none().grad()); }},
      {"Tensor::set_grad", [=] { none().set_grad(one); }},
      answer("Tensor::set_grad",
             [=] {
               Tensor p = tensor({1, 2});
               p.set_grad(tensor({3, 4}));
               p.set_grad(none());
               CHECK(!p.grad().defined());
             }),
      {"Tensor::sum", [=] { use(none().sum()); }},
      {"Tensor::backward", [=] { none().backward(); }},
  };
}

Rows rows_of_functions_of_tensors() {
  const auto none = undefined;
  const auto back = [](const Tensor&) -> Grads { return {}; };
  return {
      {"empty_like", [=] { use(empty_like(none())); }},
      {"empty_like", [=] { use(empty_like(none(), float64)); }},
      {"zeros_like", [=] { use(zeros_like(none())); }},
      {"scalars_beside", [=] { use(scalars_beside(nothing_in_it())); }},
      answer("to_string",
             [=] { CHECK(to_string(none()) == "tensor(undefined)"); }),
      {"bitwise_equal", [=] { use(bitwise_equal(one, none())); }},
      {"bitwise_equal", [=] { use(bitwise_equal({one}, nothing_in_it())); }},
      {"hash_of_bits", [=] { use(hash_of_bits({none()})); }},
      {"allclose", [=] { use(allclose(none(), one)); }},
      {"uniform_",
       [=] {
         Generator generator(1);
         uniform_(none(), 0, 1, generator);
       }},

      answer("wants_grad", [=] { CHECK(!wants_grad(none())); }),
      {"with_grad", [=] { use(with_grad(none(), {one}, back)); }},
      {"with_grad", [=] { use(with_grad(one, {none()}, nullptr)); }},
      {"passing_grad", [=] { use(passing_grad(none(), one)); }},
      answer("passing_grad",
             [=] { CHECK(passing_grad(one, none()).impl() == one.impl()); }),
      {"run_backward", [=] { run_backward(none(), one); }},
      {"GradFn::GradFn", [=] { const GradFn made({none()}, nullptr); }},
      answer("GradFn::Edge::Edge",
             [=] { CHECK(GradFn::Edge(none()).leaf == nullptr); }),

      {"add", [=] { use(add(none(), one)); }},
      {"sub", [=] { use(sub(one, none())); }},
      {"mul", [=] { use(mul(none(), none())); }},
      {"relu", [=] { use(relu(none())); }},
      {"tanh", [=] { use(tanh(none())); }},
      {"sigmoid", [=] { use(sigmoid(none())); }},
      {"gelu", [=] { use(gelu(none())); }},
      {"gelu", [=] { use(gelu(none(), Gelu::tanh)); }},
      {"softmax", [=] { use(softmax(none(), 0)); }},
      {"log_softmax", [=] { use(log_softmax(none(), 0)); }},
      {"matmul", [=] { use(matmul(none(), one)); }},
      {"matmul_into", [=] { matmul_into(none(), one, one); }, "matmul: "},
      {"matmul_each_into",
       [=] { matmul_each_into(nothing_in_it(), nothing_in_it(), {{one}}); },
       "matmul: "},
      {"linear", [=] { use(linear(none(), one)); }},
      {"dropout", [=] { use(dropout(none(), 0.5, 1, 1)); }},
      {"mse_loss", [=] { use(mse_loss(one, none())); }},
      {"nll_loss", [=] { use(nll_loss(none(), {0})); }},
      {"cross_entropy", [=] { use(cross_entropy(none(), {0})); }},

      {"pointwise",
       [=] { use(pointwise({none()}, [](Terms t) { return t[0]; })); }},
      {"pointwise", [=] { use(pointwise({}, {})); }},
      {"pointwise_into",
       [=] { pointwise_into(none(), {one}, [](Terms t) { return t[0]; }); }},
      {"pointwise_into",
       [=] { pointwise_into(one, {none()}, [](Terms t) { return t[0]; }); }},
      {"pointwise_into", [=] { pointwise_into(one, {one}, {}); }},
      {"check_defined", [=] { check_defined(none()); }, "undefined_objects::"},

      {"Scalar::Scalar", [=] { use(Scalar(none())); },
       "expected a number or a 0-d tensor"},
      {"Operand::Operand", [=] { const Operand made(none()); },
       "expected a number"},
      {"Operand::Operand", [=] { const Operand made(nothing_in_it()); },
       "tensor list[0] is an undefined tensor"},
      {"MapOperand::MapOperand", [=] { const MapOperand made(none()); },
       "an operand of foreach_map at "},
      {"MapOperand::MapOperand",
       [=] { const MapOperand made(nothing_in_it()); },
       "tensor list[0] is an undefined tensor"},
      {"Element::Element", [=] { const Element made(none()); },
       "expected a number"},
      {"Placed::Placed", [=] { const Placed made(none()); },
       "expected a number"},
      {"TensorList::TensorList", [=] { const TensorList made({none()}); },
       "tensor list[0] is an undefined tensor; remove it"},
      {"TensorList::TensorList",
       [=] { const TensorList made(nothing_in_it(), "grads"); },
       "grads[0] is an undefined tensor; remove it"},
      {"TensorList::per_tensor", [=] { use(TensorList::per_tensor({none()})); },
       "tensor list[0] is an undefined tensor"},
      {"number_list", [=] { use(number_list(none(), "")); }},

      {"save_tensors", [=] { save_tensors("/nowhere/file", {{"w", none()}}); },
       "cannot write '/nowhere/file': the tensor \"w\" is undefined"},
      {"write_safetensors",
       [=] { write_safetensors("/nowhere/file", {}, {{"w", none()}}); },
       "cannot write '/nowhere/file': the tensor \"w\" is undefined"},
      {"load_tensors",
       [=] {
         const ScratchDirectory folder = make_temporary_directory();
         const std::string path = folder.path() + "/one";
         save_tensors(path, {{"w", one}});
         load_tensors(path, {{"w", none()}});
       },
       "cannot load '"},
      answer("Printable::Printable",
             [=] { CHECK(Printable(none()).shown() == "tensor(undefined)"); }),
  };
}

}  // namespace undefined_objects
