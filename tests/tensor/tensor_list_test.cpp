#include "fusebook/tensor/tensor_list.h"

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "fusebook/foreach/foreach.h"
#include "fusebook/support/error.h"
#include "support/step_testing.h"

using namespace fuse;
using namespace step_testing;

namespace {

std::uint64_t identity(const TensorList& list) { return list.impl()->id; }

template <class Function>
std::string error_of(Function function) {
  return testing::message_of<Error>(function);
}

}  // namespace

TEST_CASE("a list holds its tensors") {
  const auto tensors = make_params(mixed_shapes(5), 1);
  const TensorList list(tensors, "weights");
  CHECK(list.size() == 5);
  CHECK_FALSE(list.empty());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    CHECK(list[i].impl() == tensors[i].impl());
  }
  std::size_t seen = 0;
  for (const Tensor& tensor : list) {
    CHECK(tensor.impl() == tensors[seen++].impl());
  }
  CHECK(seen == 5);
  CHECK(TensorList().empty());
  CHECK(TensorList({tensors[0], tensors[1]}).size() == 2);
}

TEST_CASE("the view gives addresses, sizes and the label") {
  const auto tensors = make_params({{3}, {}, {2, 0}}, 1);
  const TensorList list(tensors, "weights");
  const ListView view = list.impl()->view();
  REQUIRE(view.count == 3);
  CHECK(view.addresses[0] == tensors[0].raw_data());
  CHECK(view.addresses[1] == tensors[1].raw_data());
  CHECK(view.numels[0] == 3);
  CHECK(view.numels[1] == 1);
  CHECK(view.numels[2] == 0);
  CHECK(std::string(view.label) == "weights");
  CHECK(TensorList(tensors).impl()->view().label == nullptr);
}

TEST_CASE("lists of the same memory are the same list") {
  const auto tensors = make_params({{3}, {4}}, 1);
  const TensorList list(tensors);
  const TensorList twin(tensors, "other label");
  CHECK(identity(list) == identity(twin));
  const TensorList through_blobs{from_blob(tensors[0].raw_data(), {3}),
                                 from_blob(tensors[1].raw_data(), {2, 2})};
  CHECK(identity(list) == identity(through_blobs));

  CHECK(identity(list) != identity({tensors[1], tensors[0]}));
  CHECK(identity(list) != identity({tensors[0]}));
  CHECK(identity(list) != identity({tensors[0], tensors[1], tensors[0]}));
  CHECK(identity(list) !=
        identity({tensors[0], from_blob(tensors[1].raw_data(), {3})}));
  const std::vector<Tensor> numbers = scalars(2);
  CHECK(identity(TensorList(numbers)) !=
        identity(TensorList::per_tensor(numbers)));
}

TEST_CASE("empty lists are the same list, whatever became of others") {
  const TensorList list;
  {
    const TensorList other;
    CHECK(identity(other) == identity(list));
  }
  CHECK(identity(TensorList(std::vector<Tensor>())) == identity(list));
  CHECK(identity(TensorList::per_tensor({})) != identity(list));
  CHECK(identity(TensorList::per_tensor({})) ==
        identity(TensorList::per_tensor({})));
  CHECK(identity({zeros({3})}) != identity(list));
  CHECK(identity({zeros({0})}) != identity(list));
}

TEST_CASE("an identity is never used again") {
  const Tensor tensor = zeros({3});
  std::uint64_t old = 0;
  {
    const TensorList list{tensor};
    old = identity(list);
    CHECK(identity({tensor}) == old);
  }
  // Nobody holds it any more, and its memory may be somebody else's.
  CHECK(identity({tensor}) != old);
}

TEST_CASE("an identity outlives the list that brought it") {
  const Tensor tensor = zeros({3});
  auto first = std::make_unique<TensorList>(std::vector<Tensor>{tensor});
  const std::uint64_t id = identity(*first);
  const TensorList second{tensor};
  first.reset();
  CHECK(identity(second) == id);
  CHECK(identity({tensor}) == id);
}

TEST_CASE("lists may be made and dropped by many threads") {
  const auto tensors = make_params(mixed_shapes(3), 1);
  const TensorList kept(tensors);
  std::vector<std::thread> threads;
  std::vector<int> wrong(4);
  for (int& count : wrong) {
    threads.emplace_back([&] {
      for (int i = 0; i < 500; ++i) {
        const TensorList own{zeros({2})};
        const TensorList shared(tensors);
        count += identity(shared) != identity(kept);
        count += identity(shared) == identity(own);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const int count : wrong) CHECK(count == 0);
}

TEST_CASE("what makes no list is refused by name") {
  const Tensor one = zeros({2});
  CHECK(error_of([&] { TensorList list({one, Tensor()}, "grads"); }) ==
        "grads[1] is an undefined tensor; remove it from the list");
  CHECK(error_of([&] {
          TensorList list(std::vector<Tensor>{one, zeros({2}, DType::float64)});
        }) ==
        "tensor list[1] is float64 but tensor list[0] is float32; make one "
        "list for each dtype");
  CHECK(error_of([&] {
          TensorList::per_tensor({tensor(1.0), zeros({1})}, "steps");
        }) ==
        "steps[1] has shape [1]; a list of per-tensor scalars takes 0-d "
        "tensors");
}

TEST_CASE("shapes are compared, not only sizes") {
  const auto list = make_params({{2, 3}}, 1);
  const auto shapes = std::vector<Shape>{{3, 2}, {6}, {2, 3, 1}};
  for (const Shape& shape : shapes) {
    const std::string message =
        error_of([&] { foreach_add_(list, make_params({shape}, 1)); });
    CHECK(testing::contains(message, "tensor 0 of operand 2 has shape " +
                                         to_string(shape) +
                                         " but operand 1 has [2, 3]"));
  }
  CHECK(testing::contains(
      error_of([&] { foreach_add_(list, make_params({{1, 2, 3}}, 1)); }),
      "output with shape [2, 3] doesn't match the broadcast shape [1, 2, 3]"));
  CHECK(testing::contains(error_of([&] {
                            foreach_add_(TensorList({zeros({})}, "params"),
                                         TensorList(list, "grads"));
                          }),
                          "tensor 0 of operand 1 (params) is written but "
                          "operand 2 (grads) has shape [2, 3]"));
}

TEST_CASE("the first tensor that differs is named") {
  const auto list = make_params({{}, {2}, {0}, {3}}, 1);
  const auto other = make_params({{}, {2}, {1}, {4}}, 1);
  CHECK(testing::contains(error_of([&] { foreach_add_(list, other); }),
                          "tensor 3 of operand 2 has shape [4] but operand 1 "
                          "has [3]"));
}

TEST_CASE("bits are compared tensor by tensor") {
  const auto list = make_params(mixed_shapes(4), 1);
  auto other = copies(list);
  CHECK(bitwise_equal(TensorList(list), TensorList(other)));
  other[0].data<float>()[0] += 1;
  CHECK_FALSE(bitwise_equal(TensorList(list), TensorList(other)));
  CHECK_FALSE(bitwise_equal(TensorList(list), TensorList({list[0]})));
}
