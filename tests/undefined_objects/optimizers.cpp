#include <doctest/doctest.h>

#include "rows.h"

using namespace fuse;

namespace undefined_objects {
namespace {

Tensor param() {
  Tensor made = tensor({1, 2});
  made.set_grad(tensor({3, 4}));
  return made;
}

Adam gone() { return left_of(Adam({param()})); }
Adam::Group gone_group() { return left_of(Adam::Group({param()})); }
AdamOptions left_options() { return left_of(AdamOptions{.lr = tensor(0.5)}); }

/// One whose only parameter was taken away behind its back.
Adam without_param() {
  Adam adam({param()});
  adam.param_groups[0].params = {undefined()};
  return adam;
}

constexpr const char* undefined_param =
    "optimizer: parameter 0 of group 0 is an undefined tensor";
constexpr const char* undefined_named =
    "optimizer: parameter 0 of group 0 (\"w\") is an undefined tensor";
constexpr const char* moved_from =
    "Adam::step: this optimizer was moved from, at ";

NamedParams named() { return {{"w", undefined()}}; }

StateDict dict_with_undefined_state() {
  Adam adam({param()});
  adam.step();
  StateDict all = adam.state_dict();
  all.state.at(0).at("exp_avg") = undefined();
  return all;
}

std::string in_folder(const ScratchDirectory& folder) {
  return folder.path() + "/run";
}

}  // namespace

Rows rows_of_optimizers() {
  const auto none = undefined;
  const auto nothing = [](Optimizer&) {};
  return {
      {"ListOptimizer::ListOptimizer", [=] { Adam made({none()}); },
       undefined_param},
      {"ListOptimizer::ListOptimizer", [=] { Adam made(named()); },
       undefined_named},
      answer("ListOptimizer::ListOptimizer",
             [] { const Adam made(std::vector<Adam::Group>{gone_group()}); }),
      {"ListOptimizer::Group::Group",
       [=] { Adam made({Adam::Group({none()})}); }, undefined_param},
      {"ListOptimizer::Group::Group",
       [=] { Adam made({Adam::Group(named())}); }, undefined_named},
      {"ListOptimizer::Group::Group",
       [=] { Adam made({Adam::Group({none()}, left_options())}); },
       undefined_param},
      {"ListOptimizer::Group::Group",
       [=] { Adam made({Adam::Group(named(), left_options())}); },
       undefined_named},
      {"Muon::Muon", [=] { Muon made({none()}); }, undefined_param},
      {"Muon::Muon", [=] { Muon made(named()); }, undefined_named},
      {"AdamW::AdamW", [=] { AdamW made({none()}); }, undefined_param},
      {"AdamW::AdamW", [=] { AdamW made(named()); }, undefined_named},
      answer("AdamW::AdamW",
             [] {
               const AdamW made(
                   std::vector<AdamW::Group>{left_of(AdamW::Group({param()}))});
             }),
      {"AdamW::Group::Group", [=] { AdamW made({AdamW::Group({none()})}); },
       undefined_param},
      {"AdamW::Group::Group", [=] { AdamW made({AdamW::Group(named())}); },
       undefined_named},
      {"AdamW::Group::Group",
       [=] { AdamW made({AdamW::Group({none()}, AdamWOptions())}); },
       undefined_param},
      {"AdamW::Group::Group",
       [=] { AdamW made({AdamW::Group(named(), AdamWOptions())}); },
       undefined_named},

      {"Optimizer::step", [] { gone().step(); }, moved_from},
      {"Optimizer::step", [] { gone().step([] { return 1; }); }, moved_from},
      {"Optimizer::step",
       [] {
         Adam adam = gone();
         compile([&] { adam.step(); })();
       },
       moved_from},
      {"Optimizer::step", [] { gone().step(GradientAddresses{}); }, moved_from},
      {"Optimizer::step", [] { gone().step(StepOptions{}); }, moved_from},
      {"Optimizer::step",
       [] { gone().step(GradientAddresses{}, StepOptions{}); }, moved_from},
      {"Optimizer::step", [] { without_param().step(); }, undefined_param},
      {"Optimizer::step",
       [] {
         Adam adam({param()});
         adam.step(std::function<int()>());
       },
       "Optimizer::step: the closure is empty"},
      {"Optimizer::register_step_pre_hook",
       [] { gone().register_step_pre_hook(nullptr); },
       "StepHooks::add: the hook is empty"},
      {"Optimizer::register_step_post_hook",
       [] { gone().register_step_post_hook(nullptr); },
       "StepHooks::add: the hook is empty"},
      answer("Optimizer::register_step_pre_hook",
             [=] { gone().register_step_pre_hook(nothing).remove(); }),
      answer("Optimizer::group_count",
             [] { CHECK(gone().group_count() == 0); }),
      {"Optimizer::group", [] { use(gone().group(0)); },
       "Adam: parameter group 0 is out of range"},
      {"Optimizer::group",
       [] {
         const Adam left = gone();
         use(left.group(0));
       },
       "Adam: parameter group 0 is out of range"},
      answer("Optimizer::name", [] { CHECK(gone().name() == "Adam"); }),
      answer("Optimizer::steps", [] { CHECK(gone().steps() == 0); }),
      answer("Optimizer::state",
             [=] { CHECK(!gone().state(none(), "exp_avg").defined()); }),
      {"Optimizer::state",
       [] {
         Adam adam({param()});
         adam.step();
         adam.state(adam.parameters()[0], "typo").item();
       },
       "Tensor::item: the tensor is undefined"},
      answer("Optimizer::states",
             [=] { CHECK(gone().states(none()).empty()); }),
      answer("Optimizer::has_parts", [] { CHECK_FALSE(gone().has_parts()); }),
      answer("Optimizer::set_wholes", [] { gone().set_wholes({}); }),
      {"Optimizer::states_in_use",
       [] { use(gone().states_in_use(0, param())); },
       "Adam: parameter group 0 is out of range"},
      {"states_in_use",
       [=] { use(states_in_use({}, none(), {{"step", none()}})); }},
      {"Optimizer::check_states",
       [] { gone().check_states("", 0, param(), {}); },
       "Adam: parameter group 0 is out of range"},
      {"Optimizer::check_states",
       [=] { Adam({param()}).check_states("", 0, none(), {}); },
       "check_states: "},
      {"Optimizer::state_names", [] { use(gone().state_names(0, param())); },
       "Adam: parameter group 0 is out of range"},
      {"state_names", [=] { use(state_names({}, none())); }},
      {"Optimizer::plain_state_dtype",
       [] { use(gone().plain_state_dtype("", 0, param(), "exp_avg")); },
       "Adam: parameter group 0 is out of range"},
      {"plain_state_dtype",
       [=] { use(plain_state_dtype("", none(), {}, "exp_avg")); }},
      {"check_states", [=] { check_states("", none(), {}, {}); }},
      {"state_dtype", [=] { use(state_dtype({.name = "exp_avg"}, none())); }},
      {"has_state", [=] { use(has_state({.name = "exp_avg"}, none())); }},
      {"state_shape", [=] { use(state_shape({.name = "exp_avg"}, none())); }},
      {"is_factored", [=] { use(is_factored({}, none())); }},
      {"has_8bit_states", [=] { use(has_8bit_states({}, none())); }},
      {"check_states",
       [=] { check_states("here: ", param(), {}, {{"step", none()}}); },
       "here: step is undefined"},
      {"Optimizer::restore_states", [=] { gone().restore_states(none(), {}); },
       "StateStore::restore: "},
      {"Optimizer::restore_states",
       [=] { gone().restore_states(param(), {{"step", none()}}); },
       "StateStore::restore: "},
      {"Optimizer::prepare_states",
       [=] {
         std::vector<ParamStates> states = {{{"exp_avg", param()}}};
         gone().prepare_states({none()}, states);
       },
       "StateStore::prepare: "},
      {"Optimizer::prepare_states",
       [=] {
         std::vector<ParamStates> states = {{{"exp_avg", none()}}};
         gone().prepare_states({param()}, states);
       },
       "StateStore::prepare: "},
      answer("Optimizer::state_changes",
             [] { CHECK(gone().state_changes() == 0); }),
      answer("Optimizer::restore_steps", [] { gone().restore_steps(3); }),
      answer("Optimizer::state_dict",
             [] { CHECK(gone().state_dict().param_groups.empty()); }),
      {"Optimizer::load_state_dict",
       [] { gone().load_state_dict(Adam({param()}).state_dict()); },
       "cannot load the state dict: it has 1 parameter groups, but this "
       "optimizer has 0"},
      {"Optimizer::load_state_dict",
       [] { Adam({param()}).load_state_dict(StateDict()); },
       "cannot load the state dict: it was saved by "},
      {"Optimizer::load_state_dict",
       [] { Adam({param()}).load_state_dict(dict_with_undefined_state()); },
       "cannot load the state dict: state[0].exp_avg is undefined"},
      {"Optimizer::gradient_lists", [] { use(gone().gradient_lists()); },
       "Adam::gradient_lists: this optimizer was moved from"},
      answer("Optimizer::parameters",
             [] { CHECK(gone().parameters().empty()); }),
      answer("Optimizer::master_params",
             [] { CHECK(gone().master_params().empty()); }),
      answer("Optimizer::updates_in_float32",
             [] { CHECK(!gone().updates_in_float32()); }),
      answer("Optimizer::use_master_weights",
             [] { gone().use_master_weights(); }),
      answer("Optimizer::use_split_masters",
             [] { gone().use_split_masters(); }),
      answer("Optimizer::use_stochastic_rounding",
             [] { gone().use_stochastic_rounding(); }),
      answer("Optimizer::use_opmath", [] { gone().use_opmath(); }),
      {"Optimizer::set_part",
       [=] { Adam({param()}).set_part(none(), PartOf()); },
       "StateStore::set_part: the part is undefined"},
      answer("Optimizer::use_8bit_states", [] { gone().use_8bit_states(); }),
      answer("Optimizer::memory", [] { CHECK(gone().memory().params == 0); }),
      answer("Optimizer::zero_grad", [] { gone().zero_grad(); }),
      answer("Optimizer::zero_grad", [] { without_param().zero_grad(false); }),
      answer("ListOptimizer::group_count",
             [] { CHECK(gone().group_count() == 0); }),
      {"ListOptimizer::group", [] { gone().group(0); },
       "Adam: parameter group 0 is out of range"},
      {"ListOptimizer::group",
       [] {
         const Adam left = gone();
         use(left.group(0));
       },
       "Adam: parameter group 0 is out of range"},
      {"ListOptimizer::add_param_group",
       [=] { Adam({param()}).add_param_group({none()}); },
       "optimizer: parameter 0 of group 1 is an undefined tensor"},
      {"ListOptimizer::add_param_group",
       [=] { Adam({param()}).add_param_group(named()); },
       "optimizer: parameter 0 of group 1 (\"w\") is an undefined tensor"},
      answer("ListOptimizer::add_param_group",
             [] {
               Adam adam = gone();
               adam.add_param_group(Adam::Group({param()}));
               adam.step();
               CHECK(adam.steps() == 1);
             }),

      answer("ParamGroup::ParamGroup",
             [=] { CHECK(!Adam::Group({none()}).params[0].defined()); }),
      answer("ParamGroup::ParamGroup",
             [=] { CHECK(!Adam::Group(named()).params[0].defined()); }),
      {"ParamGroup::operator[]", [] { gone_group()["momentum"]; },
       "a parameter group of this optimizer has no \"momentum\""},
      answer("ParamGroup::is_like",
             [] { CHECK(gone_group().is_like(gone_group())); }),
      answer("ListOptimizer::Group::is_like",
             [] { CHECK(gone_group().is_like(Adam::Group({param()}))); }),
      answer("ParamGroup::for_each_number",
             [] {
               int numbers = 0;
               auto count = [&](const ParamGroup::Named&) { ++numbers; };
               gone_group().for_each_number(count);
               CHECK(numbers == 5);
             }),
      answer("ParamGroup::find",
             [] { CHECK(gone_group().find("lr")->value() == 1e-3); }),
      answer("ParamGroup::numbers",
             [] { CHECK(gone_group().numbers().size() == 5); }),
      answer("ParamGroup::flags",
             [] { CHECK(gone_group().flags().size() == 3); }),
      answer("ParamGroup::switches",
             [] { CHECK(gone_group().switches().size() == 7); }),
      answer("ParamGroup::set", [] { gone_group().set({{"lr", 0.5}}); }),
      answer("ParamGroup::check", [] { gone_group().check({{"lr", 0.5}}); }),
      answer("ParamGroup::storage",
             [] { CHECK(!gone_group().storage().states_8bit); }),
      answer("ParamGroup::storage",
             [] {
               const Adam::Group left = gone_group();
               CHECK(left.storage() == GroupStorage());
             }),
      answer("GroupStorage::updates_in_float32",
             [] { CHECK(!gone_group().storage().updates_in_float32()); }),
      answer("GroupStorage::saved_switches",
             [] { CHECK(GroupStorage::saved_switches().size() == 4); }),
      {"GroupStorage::check_sizes",
       [] { GroupStorage{.min_8bit_size = -1}.check_sizes("here: "); },
       "here: min_8bit_size must not be negative"},
      answer("ParamGroup::name_numbers", [] { gone_group().name_numbers(0); }),
      answer("ParamGroup::tell",
             [] {
               Facts facts;
               gone_group().tell(facts);
             }),
      answer("ParamGroup::foreach", [] { CHECK(gone_group().foreach ()); }),
      answer("ListOptimizer::Group::foreach",
             [] { CHECK(gone_group().foreach ()); }),
      {"describe_param", [] { use(describe_param({}, 0, 0)); }},
      {"describe_param", [] { use(describe_param({nullptr}, 0, 0)); }},
      {"check_parameters", [] { check_parameters({nullptr}); }},
      {"check_parameters",
       [=] {
         const Adam::Group group({none()});
         check_parameters({&group});
       },
       undefined_param},
      {"with_initials",
       [] {
         Adam::Group group = gone_group();
         const StateSpec spec = {"step_size", 0, Rate::element, "typo"};
         use(with_initials({&spec, 1}, group));
       },
       "a parameter group of this optimizer has no \"typo\""},
      answer("check_argument",
             [] { check_argument("Adam", "lr", left_options().lr, true); }),
      answer("check_not_negative",
             [] { check_not_negative("Adam", "lr", left_options().lr); }),
      answer("check_betas", [] { check_betas("Adam", left_options().betas); }),

      {"StepHooks::add", [] { StepHooks().add(nullptr); }},
      answer("StepHooks::remove",
             [=] {
               StepHooks hooks;
               hooks.add(nothing);
               left_of(hooks).remove(1);
             }),
      answer("StepHooks::call",
             [=] {
               Adam adam = gone();
               StepHooks hooks;
               hooks.add(nothing);
               left_of(hooks).call(adam);
             }),
      answer("RemovableHandle::RemovableHandle",
             [] { RemovableHandle(nullptr, 1).remove(); }),
      answer(
          "RemovableHandle::remove",
          [=] { left_of(gone().register_step_post_hook(nothing)).remove(); }),

      {"AdamByHand::AdamByHand", [=] { AdamByHand made({none()}); }},
      {"AdamByHand::step", [] { left_of(AdamByHand({param()})).step(); }},
      {"AdamByHandOnGpu::step",
       [=] {
         const AdamByHandOnGpu made(parse_device("cuda-sim"));
         made.step({none()}, {none()}, {none()}, {});
       }},
      {"AdamByHandOnGpu::kernel",
       [] {
         const AdamByHandOnGpu gone =
             left_of(AdamByHandOnGpu(parse_device("cuda-sim")));
         use(gone.kernel().resident_blocks());
       },
       "CudaKernel::resident_blocks: "},

      answer("save_checkpoint",
             [] {
               const ScratchDirectory folder = make_temporary_directory();
               Adam adam = gone();
               save_checkpoint(in_folder(folder), adam);
             }),
      {"save_checkpoint",
       [] {
         const ScratchDirectory folder = make_temporary_directory();
         Adam adam = without_param();
         save_checkpoint(in_folder(folder), adam);
       },
       "cannot write '"},
      {"load_checkpoint",
       [] {
         const ScratchDirectory folder = make_temporary_directory();
         Adam adam({param()});
         save_checkpoint(in_folder(folder), adam);
         Adam other = gone();
         load_checkpoint(in_folder(folder), other);
       },
       "cannot load '"},
      {"load_checkpoint",
       [] {
         const ScratchDirectory folder = make_temporary_directory();
         Adam adam({param()});
         save_checkpoint(in_folder(folder), adam);
         Adam other = without_param();
         load_checkpoint(in_folder(folder), other);
       },
       "cannot load '"},
  };
}

}  // namespace undefined_objects
