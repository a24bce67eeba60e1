#include "optim/param_group.h"

#include <set>
#include <string_view>

#include "error.h"

namespace fuse {
namespace {

std::string full_name(const char* name, int index) {
  return index < 0 ? name
                   : std::string(name) + "[" + std::to_string(index) + "]";
}

// Does `text` say "name", or "name[index]"?
bool goes_by(std::string_view text, std::string_view name, int index) {
  if (index < 0) return text == name;
  return text.size() == name.size() + 3 && text.starts_with(name) &&
         text[name.size()] == '[' && text[name.size() + 1] == '0' + index &&
         text.back() == ']';
}

}  // namespace

std::vector<ParamGroup::Named> ParamGroup::scalars() {
  std::vector<Named> all;
  visit_scalars(&all, [](void* list, const Named& named) {
    static_cast<std::vector<Named>*>(list)->push_back(named);
  });
  return all;
}

// Schedulers look up what they move at every step: no memory is asked for.
Scalar* ParamGroup::find(const std::string& name) {
  struct Search {
    std::string_view name;
    Scalar* found;
  } search{name, nullptr};
  visit_scalars(&search, [](void* context, const Named& named) {
    auto& wanted = *static_cast<Search*>(context);
    if (goes_by(wanted.name, named.name, named.index)) {
      wanted.found = named.scalar;
    }
  });
  return search.found;
}

void ParamGroup::name_numbers(int group) {
  visit_scalars(&group, [](void* context, const Named& named) {
    Origin origin = named.scalar->origin();
    origin.name = named.name;
    origin.index = named.index;
    origin.group = *static_cast<int*>(context);
    named.scalar->set_origin(origin);
  });
}

std::vector<std::pair<std::string, Scalar*>> ParamGroup::numbers() {
  std::vector<std::pair<std::string, Scalar*>> all;
  for (const Named& named : scalars()) {
    all.emplace_back(full_name(named.name, named.index), named.scalar);
  }
  return all;
}

Scalar& ParamGroup::operator[](const std::string& name) {
  if (Scalar* const found = find(name)) return *found;
  std::string known;
  for (const Named& named : scalars()) {
    const std::string candidate = full_name(named.name, named.index);
    known += (known.empty() ? "" : ", ") + candidate;
  }
  throw Error("a parameter group of this optimizer has no \"" + name +
              "\"; it has " + known);
}

void check_parameters(const std::vector<const ParamGroup*>& groups) {
  std::set<const TensorImpl*> seen;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    for (std::size_t i = 0; i < groups[g]->params.size(); ++i) {
      const std::string name =
          "parameter " + std::to_string(i) + " of group " + std::to_string(g);
      const Tensor& param = groups[g]->params[i];
      if (!param.defined()) {
        throw Error("optimizer: " + name + " is an undefined tensor");
      }
      if (!seen.insert(param.impl().get()).second) {
        throw Error("optimizer: " + name +
                    " stands in the groups more than once; list every "
                    "parameter once");
      }
    }
  }
}

}  // namespace fuse
