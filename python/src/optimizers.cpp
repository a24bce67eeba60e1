#include "optimizers.h"

#include <cstddef>
#include <utility>

#include "fusebook/device/allocator.h"
#include "fusebook/optim/all.h"
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

}  // namespace

AnyOptimizer make_optimizer(const std::string& name) {
  if (name == "Adadelta") return make<Adadelta>();
  if (name == "Adafactor") return make<Adafactor>();
  if (name == "Adagrad") return make<Adagrad>();
  if (name == "Adam") return make<Adam>();
  if (name == "AdamW") {
    return make<AdamW, Adam::Group>(AdamWOptions().as_adam());
  }
  if (name == "Adamax") return make<Adamax>();
  if (name == "AdEMAMix") return make<AdEMAMix>();
  if (name == "ASGD") return make<ASGD>();
  if (name == "LAMB") return make<LAMB>();
  if (name == "LARS") return make<LARS>();
  if (name == "NAdam") return make<NAdam>();
  if (name == "RAdam") return make<RAdam>();
  if (name == "RMSprop") return make<RMSprop>();
  if (name == "Rprop") return make<Rprop>();
  if (name == "SGD") return make<SGD>();
  throw Error("there is no optimizer called " + name);
}

}  // namespace fuse::python
