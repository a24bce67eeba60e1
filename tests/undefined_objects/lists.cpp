#include <doctest/doctest.h>

#include "fusebook/optim_base/gradients.h"
#include "fusebook/tensor/pointwise.h"
#include "rows.h"

using namespace fuse;

namespace undefined_objects {
namespace {

TensorList gone() { return left_of(TensorList({tensor(1.0)})); }
TensorList some() { return TensorList({tensor({1, 2})}); }

Operand gone_operand() { return left_of(Operand(some())); }
MapOperand gone_map_operand() { return left_of(MapOperand(some())); }
Element gone_element() { return left_of(Element(Operand(some()), 0)); }
Scalar left_scalar() { return left_of(Scalar(tensor(0.5))); }

Batch gone_batch() {
  return left_of(Batch{some(),
                       some(),
                       some(),
                       {some()},
                       {"m"},
                       TensorList(),
                       TensorList(),
                       TensorList(),
                       TensorList()});
}

MatrixMeans gone_means() { return left_of(MatrixMeans({zeros({2, 2})}, {})); }

constexpr const char* operand_gone =
    "foreach_mul: operand 1 was moved from, at ";

}  // namespace

Rows rows_of_lists() {
  const auto here = std::source_location::current();
  return {
      answer("TensorList::TensorList",
             [] { CHECK(!TensorList(std::shared_ptr<ListImpl>()).defined()); }),
      answer("TensorList::TensorList", [] { CHECK(TensorList().empty()); }),
      answer("TensorList::defined", [] { CHECK(!gone().defined()); }),
      {"TensorList::size", [] { use(gone().size()); }},
      {"TensorList::empty", [] { use(gone().empty()); }},
      {"TensorList::tensors", [] { use(gone().tensors()); }},
      {"TensorList::check_computed", [] { gone().check_computed(); }},
      {"TensorList::operator[]", [] { use(gone()[0]); }},
      {"TensorList::operator[]", [] { use(TensorList()[0]); }},
      {"TensorList::begin", [] { use(gone().begin()); }},
      {"TensorList::end", [] { use(gone().end()); }},
      {"TensorList::impl", [] { use(gone().impl()); }, "undefined_objects"},
      {"TensorList::rebind", [] { gone().rebind({}); }},
      {"TensorList::from_blob", [] { use(TensorList::from_blob({}, gone())); }},
      {"bitwise_equal", [] { use(bitwise_equal(some(), gone())); }},

      {"foreach_apply",
       [=] {
         const Operand operand = gone_operand();
         const Operand* const in[] = {&operand, &operand};
         use(foreach_apply(OpCode::mul, in, here));
       },
       operand_gone},
      {"foreach_apply", [] { use(foreach_mul(gone(), 2.0)); }, operand_gone},
      {"foreach_apply", [] { use(foreach_mul(some(), gone())); },
       "foreach_mul: operand 2 was moved from, at "},
      {"foreach_apply",
       [] { compile([] { use(foreach_mul(gone(), 2.0)); })(); }, operand_gone},
      {"foreach_apply_", [] { foreach_mul_(gone(), 2.0); },
       "foreach_mul_: the list was moved from, at "},
      {"foreach_apply_", [] { foreach_mul_(some(), gone()); },
       "foreach_mul: operand 2 was moved from, at "},
      {"foreach_zero_", [] { foreach_zero_(gone()); }},
      {"foreach_to", [] { use(foreach_to(gone(), float64)); }},
      {"foreach_norm", [] { use(foreach_norm(gone())); }, "foreach_norm at "},
      {"foreach_sum", [] { use(foreach_sum(gone())); }, "foreach_sum at "},
      {"foreach_amax", [] { use(foreach_amax(gone())); }, "foreach_amax at "},
      {"total_norm", [] { use(total_norm(gone())); }, "total_norm at "},
      {"MatrixMeans::MatrixMeans", [] { use(MatrixMeans(gone(), {})); },
       "MatrixMeans at "},
      {"MatrixMeans::take", [] { gone_means().take({zeros({2, 2})}); },
       "MatrixMeans at "},
      answer("MatrixMeans::rows",
             [] { CHECK(!gone_means().rows().defined()); }),
      answer("MatrixMeans::columns",
             [] { CHECK(!gone_means().columns().defined()); }),
      {"all_finite", [] { use(all_finite(gone())); }, "all_finite at "},
      {"get_total_norm", [] { use(get_total_norm({Tensor()})); },
       "get_total_norm at "},
      {"clip_grad_norm_", [] { clip_grad_norm_({Tensor()}, 1.0); },
       "clip_grad_norm_ at "},
      {"clip_grads_with_norm_",
       [] { clip_grads_with_norm_({Tensor()}, 1.0, 1.0); },
       "clip_grads_with_norm_ at "},
      {"clip_grad_value_", [] { clip_grad_value_({Tensor()}, 1.0); },
       "clip_grad_value_ at "},

      {"check_lists",
       [=] {
         const Operand left = gone_operand();
         const Operand* const in[] = {&left};
         check_lists({"foreach_", "mul", here}, in);
       },
       "check_lists: the list was moved from"},
      {"Term::apply", [] { use(Term::apply(OpCode::add, {})); },
       "pointwise: an operation needs at least one tensor"},
      answer("Term::in",
             [] {
               Program program;
               CHECK(left_of(Term(program, 3)).in(program) == 3);
             }),

      answer("Operand::Operand",
             [] { CHECK(!Operand(gone()).list.defined()); }),
      answer("Operand::Operand",
             [] { CHECK(Operand(left_scalar()).scalar.value() == 0.5); }),
      answer("MapOperand::MapOperand",
             [] { CHECK(MapOperand(gone()).operand().is_list); }),
      answer("MapOperand::MapOperand",
             [] {
               const MapOperand made(left_scalar());
               CHECK(made.operand().scalar.value() == 0.5);
             }),
      answer("MapOperand::MapOperand",
             [=] {
               CHECK(MapOperand(gone_map_operand(), here).place().line() > 0);
             }),
      answer("MapOperand::operand",
             [] { CHECK(!gone_map_operand().operand().list.defined()); }),
      answer("MapOperand::place",
             [] { CHECK(gone_map_operand().place().line() > 0); }),
      answer("MapOperand::is_repeated",
             [] { CHECK(!gone_map_operand().is_repeated()); }),
      answer("MapOperand::number", [] { gone_map_operand().number(1); }),
      {"MapOperand::repeat", [] { gone_map_operand().repeat(2); }},
      answer("into", [] { use(into(gone_map_operand(), gone())); }),
      {"foreach_map",
       [] { foreach_map([](Element p) { return p * 2.0; }, gone()); },
       "foreach_map: operand 1 was moved from, at "},
      {"foreach_map",
       [] {
         foreach_map(
             [](Element p) {
               const Element taken = std::move(p);
               return p;  // NOLINT(bugprone-use-after-move)
             },
             some());
       },
       "foreach_map: result 1 of the function was moved from, at "},
      {"foreach_map_",
       [] { foreach_map_([](Element p) { return p * 2.0; }, into(gone())); },
       "foreach_map_: output 1 was moved from, at "},
      {"foreach_map_",
       [] {
         foreach_map_([](Element p, Element) { return p * 2.0; }, some(),
                      gone_map_operand());
       },
       "foreach_map_: operand 1 was moved from, at "},
      {"foreach_map_",
       [] { foreach_map_([](Element p) { return left_of(p); }, some()); },
       "foreach_map_: result 1 of the function was moved from, at "},

      {"Element::apply", [] { use(gone_element() * 2.0); }, operand_gone},
      {"Element::operator+=", [] { gone_element() += 1.0; },
       "foreach_add: operand 1 was moved from"},
      {"Element::operator-=", [] { gone_element() -= 1.0; },
       "foreach_sub: operand 1 was moved from"},
      {"Element::operator*=", [] { gone_element() *= 2.0; }, operand_gone},
      {"Element::operator/=", [] { gone_element() /= 2.0; },
       "foreach_div: operand 1 was moved from"},
      {"Element::item", [] { use(gone_element().item()); }, "item() of "},
      {"to", [] { use(to(gone_element(), float64)); }, "to(float64) at "},
      answer("Element::operand",
             [] { CHECK(!gone_element().operand().list.defined()); }),
      answer("Element::comes_from",
             [] { CHECK(gone_element().comes_from(0)); }),
      answer("Element::position",
             [] { CHECK(gone_element().position() == 0); }),
      answer(
          "Element::Element",
          [] { CHECK(!Element(gone_operand(), 1).operand().list.defined()); }),
      answer(
          "Element::Element",
          [] { CHECK(Element(left_scalar()).operand().scalar.is_tensor()); }),
      answer("Placed::Placed",
             [] { CHECK(Placed(gone_element()).element().position() == 0); }),
      answer("Placed::Placed",
             [] { CHECK(!Placed(left_scalar()).element().operand().is_list); }),
      answer("Placed::element",
             [] {
               const Placed left = left_of(Placed(left_scalar()));
               CHECK(!left.element().operand().is_list);
             }),

      answer("Scalar::is_tensor", [] { CHECK(left_scalar().is_tensor()); }),
      {"Scalar::of_groups", [] { use(Scalar::of_groups(nullptr, false, {})); }},
      answer("Scalar::memory",
             [] { CHECK(left_scalar().memory().item() == 0.5); }),
      answer("Scalar::column",
             [] { CHECK(left_scalar().column() == nullptr); }),
      answer("Scalar::number",
             [] { CHECK(left_scalar().number().value == 0.5); }),
      answer("Scalar::is_zero", [] { CHECK(!left_scalar().is_zero()); }),
      answer("Scalar::value", [] { CHECK(left_scalar().value() == 0.5); }),
      answer("Scalar::value",
             [] { CHECK(left_of(Scalar(0.25)).value() == 0.25); }),
      answer("Scalar::tensor",
             [] { CHECK(left_scalar().tensor().item() == 0.5); }),
      answer("Scalar::tensor",
             [] { CHECK(!left_of(Scalar(1.0)).tensor().defined()); }),
      answer("Scalar::assign",
             [] {
               Scalar left = left_scalar();
               left.assign(3);
               CHECK(left.value() == 3);
             }),
      answer("Scalar::origin", [] { use(left_scalar().origin()); }),
      answer("Scalar::set_origin", [] { left_scalar().set_origin({}); }),
      answer("Scalar::set_moves", [] { left_scalar().set_moves(); }),
      answer("Scalar::set_scheduled", [] { left_scalar().set_scheduled(); }),
      answer("Scalar::recorded", [] { CHECK(left_scalar().recorded(1) < 0); }),
      answer("Scalar::is_recorded",
             [] { CHECK(!left_scalar().is_recorded()); }),
      answer("Scalar::is_on_gpu", [] { CHECK(!left_scalar().is_on_gpu()); }),
      answer("Scalar::touch", [] { left_scalar().touch(); }),
      answer("Scalar::watch", [] { left_scalar().watch(nullptr, {}); }),
      answer("to_string",
             [] { CHECK(to_string(left_scalar()) == "tensor(0.5000)"); }),
      answer("scalar_apply",
             [=] {
               const Scalar left = left_scalar();
               const Scalar* const in[] = {&left, &left};
               CHECK(scalar_apply(OpCode::add, in, here).value() == 1);
             }),
      answer("scalar_op",
             [] {
               CHECK(scalar_op(OpCode::sub, left_scalar(), 0.5).value() == 0);
             }),
      answer("operator+", [] { CHECK((left_scalar() + 1.0).value() == 1.5); }),
      answer("operator-", [] { CHECK((left_scalar() - 1.0).value() == -0.5); }),
      answer("operator*", [] { CHECK((left_scalar() * 2.0).value() == 1); }),
      answer("operator/", [] { CHECK((left_scalar() / 0.5).value() == 1); }),
      answer(
          "Printable::Printable",
          [] { CHECK(Printable(left_scalar()).shown() == "tensor(0.5000)"); }),

      {"make_batch",
       [] { use(make_batch({undefined()}, {}, StateStore(), std::nullopt)); }},
      {"Batch::state", [] { use(Batch().state("exp_avg")); },
       "this optimizer keeps no state \"exp_avg\""},
      {"Batch::state", [] { use(gone_batch().state("m")); },
       "this optimizer keeps no state \"m\""},
      {"Batch::keep", [] { gone_batch().keep("a", [] { return 1; }); }},
      {"signed_gradients", [] { use(signed_gradients(gone_batch(), true)); },
       "foreach_neg: operand 1 was moved from"},
      {"decayed_gradients",
       [] { use(decayed_gradients(gone_batch(), false, 0.1)); },
       "foreach_add_scaled: operand 1 was moved from"},
      {"decayed_gradients",
       [] { use(decayed_gradients(gone_batch(), false, 0.1, true, 0.1)); },
       "foreach_mul_: the list was moved from"},
      answer("is_off", [] { CHECK(!is_off(left_scalar())); }),
  };
}

}  // namespace undefined_objects
