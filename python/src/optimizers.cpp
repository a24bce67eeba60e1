#include "optimizers.h"

#include <cstddef>
#include <utility>

#include "fusebook/device/allocator.h"
#include "fusebook/optim/all.h"
#include "fusebook/optim_base/state_store.h"
#include "fusebook/support/error.h"

namespace fuse::python {
namespace {

template <class Own, class Group, class Options>
AnyOptimizer make(const Options& defaults) {
  // One parameter, until set_groups gives others: no optimizer is without.
  auto own = std::make_unique<Own>(std::vector<Tensor>{empty({0})});
  Own* const raw = own.get();
  const auto set_groups = [raw, defaults](
                              std::vector<std::vector<Tensor>> params,
                              const std::vector<ChosenOptions>& options) {
    std::vector<Group> groups;
    for (std::size_t g = 0; g < params.size(); ++g) {
      Group& group = groups.emplace_back(std::move(params[g]), defaults);
      group.set(options[g].values);
      group.storage() = options[g].storage;
      group.options.validate();
      group["lr"].set_moves();
    }
    std::vector<const ParamGroup*> all;
    for (const Group& group : groups) all.push_back(&group);
    check_parameters(all);
    raw->param_groups = std::move(groups);
  };
  return {std::move(own), set_groups};
}

template <class Own>
AnyOptimizer make() {
  using Options = decltype(Own::defaults);
  return make<Own, typename Own::Group>(Options());
}

AnyOptimizer make_adamw() {
  return make<AdamW, Adam::Group>(AdamWOptions().as_adam());
}

struct Row {
  const char* name;
  AnyOptimizer (*make)();
};
constexpr Row rows[] = {
    {"Adadelta", make<Adadelta>}, {"Adafactor", make<Adafactor>},
    {"Adagrad", make<Adagrad>},   {"Adam", make<Adam>},
    {"AdamW", make_adamw},        {"Adamax", make<Adamax>},
    {"AdEMAMix", make<AdEMAMix>}, {"ASGD", make<ASGD>},
    {"LAMB", make<LAMB>},         {"LARS", make<LARS>},
    {"NAdam", make<NAdam>},       {"RAdam", make<RAdam>},
    {"RMSprop", make<RMSprop>},   {"Rprop", make<Rprop>},
    {"SGD", make<SGD>},
};

// Options with which a group has all states that it can have.
void switch_all_on(ParamGroup& group) {
  for (const auto& [name, on] : group.flags()) *on = true;
  for (const auto& [name, number] : group.numbers()) {
    if (number->value() == 0) number->assign(0.5);
  }
}

}  // namespace

AnyOptimizer make_optimizer(const std::string& name) {
  for (const Row& row : rows) {
    if (name == row.name) return row.make();
  }
  throw Error("there is no optimizer called " + name);
}

std::set<std::string> all_state_names() {
  std::set<std::string> all = {std::string(master_name),
                               std::string(low_half_name),
                               std::string(rounding_key_name)};
  for (const Row& row : rows) {
    const AnyOptimizer any = row.make();
    switch_all_on(any.optimizer->group(0));
    for (const Tensor& param : {empty({0}), empty({0, 0})}) {
      const auto names = any.optimizer->state_names(0, param);
      all.insert(names.begin(), names.end());
    }
  }
  return all;
}

}  // namespace fuse::python
