#include "fusebook/trace/broadcast.h"

#include <fmt/core.h>

#include <algorithm>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>

#include "fusebook/support/error.h"
#include "fusebook/tensor/borrowed_list.h"
#include "fusebook/tensor/list_registry.h"
#include "fusebook/tensor/tensor_layout.h"

namespace fuse {
namespace {

// The number of shapes of lists, and of views of one list, that are cached.
constexpr std::size_t most_shapes = 1024;
constexpr std::size_t most_views = 4;

using Hashes = std::pair<std::uint64_t, std::uint64_t>;

struct MixHashes {
  std::size_t operator()(const Hashes& hashes) const {
    return std::size_t(mix_hash(hashes.first, hashes.second));
  }
};

// The broadcast shapes of two lists. One per thread, so that threads never
// wait.
using Known = std::unordered_map<Hashes, SharedShapes, MixHashes>;
Known& known_shapes() {
  static thread_local Known known;
  return known;
}

SharedShapes keep(Hashes of, ListShapes shapes) {
  Known& known = known_shapes();
  if (known.size() >= most_shapes) known.clear();
  for (const Shape& shape : shapes.shapes) {
    shapes.hash = mix_hash(shapes.hash, shape);
  }
  return known[of] = std::make_shared<const ListShapes>(std::move(shapes));
}

SharedShapes shapes_in(const ListImpl& list) {
  const Hashes of = {list.shape_hash, list.shape_hash};
  if (const auto at = known_shapes().find(of); at != known_shapes().end()) {
    return at->second;
  }
  ListShapes own;
  for (const Tensor& each : list.models()) own.shapes.push_back(each.shape());
  return keep(of, std::move(own));
}

// Null if some tensor does not broadcast.
SharedShapes together(const SharedShapes& a, const ListImpl& b) {
  const Hashes of = {a->hash, b.shape_hash};
  if (const auto at = known_shapes().find(of); at != known_shapes().end()) {
    return at->second;
  }
  ListShapes both;
  for (std::size_t i = 0; i < a->shapes.size(); ++i) {
    auto shape = broadcast_shape(a->shapes[i], b.models()[i].shape());
    if (!shape) return nullptr;
    both.shapes.push_back(std::move(*shape));
  }
  return keep(of, std::move(both));
}

// The operand's list if it is a list of elements, else null.
const ListImpl* elements(const Operand& operand) {
  const bool is_elements =
      operand.is_list && operand.list.impl()->rate == Rate::element;
  return is_elements ? &shapes_of(*operand.list.impl()) : nullptr;
}

// Reports the first tensor of an operand that does not broadcast with another
// operand's.
[[noreturn]] void refuse_shapes(const Callee& callee, Operands operands,
                                std::size_t k) {
  const ListImpl& list = *elements(*operands[k]);
  for (std::size_t i = 0; i < list.count; ++i) {
    const Shape& shape = list.models()[i].shape();
    for (std::size_t j = 0; j < k; ++j) {
      const ListImpl* const other = elements(*operands[j]);
      if (other == nullptr) continue;
      const Shape& before = other->models()[i].shape();
      if (broadcast_shape(before, shape)) continue;
      throw Error(fmt::format(
          "{}: tensor {} of {} has shape {} but {} has {}, and these do not "
          "broadcast, at {}",
          callee.function(), i, callee.describe(operands, k), to_string(shape),
          callee.describe(operands, j), to_string(before), callee.where()));
    }
  }
  throw Error(callee.function() + ": shapes do not broadcast, at " +
              callee.where());
}

// Reports the first tensor of an output that would have to be broadcast.
[[noreturn]] void refuse_output(const Callee& callee, Operands operands,
                                std::size_t target, const ListImpl& from,
                                const std::string& name) {
  const ListImpl& to = *elements(*operands[target]);
  std::size_t i = 0;
  const auto all = [&] {
    return *broadcast_shape(to.models()[i].shape(), from.models()[i].shape());
  };
  while (all() == to.models()[i].shape()) ++i;
  throw Error(
      fmt::format("{}: output with shape {} doesn't match the broadcast shape "
                  "{}: tensor {} of {} is written but {} has shape {}, at {}",
                  callee.function(), to_string(to.models()[i].shape()),
                  to_string(all()), i, callee.describe(operands, target), name,
                  to_string(from.models()[i].shape()), callee.where()));
}

Tensor in_shape(const Tensor& tensor, const Shape& shape) {
  const Tensor same(bare(*tensor.impl()));
  return tensor.shape() == shape ? same : same.expand(shape);
}

// Which tensors without dimensions get some.
FromNumbers from_numbers(const ListImpl& list, const ListShapes& to) {
  bool any = false;
  bool all = true;
  for (std::size_t i = 0; i < list.count; ++i) {
    const bool number = list.models()[i].dim() == 0 && !to.shapes[i].empty();
    any = any || number;
    all = all && number;
  }
  return all ? FromNumbers::all : any ? FromNumbers::some : FromNumbers::none;
}

std::shared_ptr<ListImpl> make_views(ListImpl& list, const ListShapes& to) {
  auto views = std::make_shared<ListImpl>();
  views->label = list.label;
  views->from_numbers = from_numbers(list, to);
  // Views of memory that the list does not hold do not hold it either.
  const std::vector<Tensor> own =
      list.owners != nullptr ? places_of(list) : list.tensors;
  std::vector<Tensor> tensors;
  tensors.reserve(own.size());
  for (std::size_t i = 0; i < own.size(); ++i) {
    tensors.push_back(in_shape(own[i], to.shapes[i]));
  }
  views->hold(std::move(tensors));
  return views;
}

}  // namespace

SharedShapes broadcast_shapes(const Callee& callee, Operands operands) {
  SharedShapes all;
  for (std::size_t k = 0; k < operands.size(); ++k) {
    const ListImpl* const list = elements(*operands[k]);
    if (list == nullptr) continue;
    all = all == nullptr ? shapes_in(*list) : together(all, *list);
    if (all == nullptr) refuse_shapes(callee, operands, k);
  }
  return all;
}

SharedShapes target_shapes(const Callee& callee, Operands operands,
                           std::size_t target) {
  SharedShapes own = shapes_in(*elements(*operands[target]));
  const SharedShapes all = broadcast_shapes(callee, operands);
  if (all->hash == own->hash) return own;
  for (std::size_t k = 0; k < operands.size(); ++k) {
    const ListImpl* const list = elements(*operands[k]);
    if (list == nullptr || together(own, *list)->hash == own->hash) continue;
    refuse_output(callee, operands, target, *list,
                  callee.describe(operands, k));
  }
  return own;
}

void check_result(const Callee& callee, Operands operands, std::size_t output,
                  const TensorList& result) {
  const ListImpl* const to = elements(*operands[output]);
  const ListImpl& from = shapes_of(*result.impl());
  if (to == nullptr || from.rate != Rate::element) return;
  if (to->shape_hash == from.shape_hash) return;
  const SharedShapes own = shapes_in(*to);
  const SharedShapes both = together(own, from);
  const std::string name = fmt::format("result {} of the function", output + 1);
  if (both != nullptr) {
    if (both->hash == own->hash) return;
    refuse_output(callee, operands, output, from, name);
  }
  std::size_t i = 0;
  const auto shape = [&](const ListImpl& list) -> const Shape& {
    return list.models()[i].shape();
  };
  while (broadcast_shape(shape(*to), shape(from))) ++i;
  throw Error(
      fmt::format("{}: {} has shape {} for tensor {} but {} has {}, and these "
                  "do not broadcast, at {}",
                  callee.function(), name, to_string(shape(from)), i,
                  callee.describe(operands, output), to_string(shape(*to)),
                  callee.where()));
}

std::shared_ptr<ListImpl> broadcast_list(const std::shared_ptr<ListImpl>& list,
                                         const ListShapes& to) {
  if (list->shape_hash == to.hash) return list;
  static std::mutex mutex;
  const std::scoped_lock lock(mutex);
  auto& kept = list->broadcasts;
  const auto known = std::find_if(
      kept.begin(), kept.end(),
      [&](const auto& views) { return views->shape_hash == to.hash; });
  if (known != kept.end()) return *known;
  if (kept.size() == most_views) kept.erase(kept.begin());
  return kept.emplace_back(make_views(*list, to));
}

}  // namespace fuse
