// The same memory, seen by both libraries.
#include <doctest/doctest.h>
#include <fusebook/libtorch/all.h>
#include <torch/torch.h>

TEST_CASE("a view shares memory, sizes and strides") {
  for (const auto dtype :
       {torch::kFloat, torch::kDouble, torch::kHalf, torch::kBFloat16}) {
    const torch::Tensor theirs =
        torch::arange(0, 12, dtype).view({3, 4}).t().narrow(0, 1, 2);
    const fuse::Tensor ours = fuse::libtorch::view(theirs);
    CHECK(ours.shape() == fuse::Shape{2, 3});
    CHECK(ours.strides() == fuse::Shape{1, 4});
    CHECK(ours.raw_data() == theirs.data_ptr());
    CHECK(ours.to_vector() == std::vector<double>{1, 5, 9, 2, 6, 10});
    const torch::Tensor back = fuse::libtorch::view(ours);
    CHECK(back.data_ptr() == theirs.data_ptr());
    CHECK(back.dtype() == dtype);
    CHECK(torch::equal(back, theirs));
  }
  CHECK(fuse::libtorch::view(torch::ones({0, 3})).shape() == fuse::Shape{0, 3});
}

TEST_CASE("a view keeps the memory") {
  fuse::Tensor ours;
  {
    const torch::Tensor theirs = torch::full({1000}, 3.0);
    ours = fuse::libtorch::view(theirs);
    CHECK(theirs.storage().use_count() == 2);
  }
  CHECK(ours.to_vector() == std::vector<double>(1000, 3.0));
  torch::Tensor back;
  {
    const fuse::Tensor made = fuse::full({1000}, 5.0);
    back = fuse::libtorch::view(made);
  }
  CHECK(torch::equal(back, torch::full({1000}, 5.0)));
}

TEST_CASE("what cannot be seen is refused") {
  CHECK_THROWS_WITH_AS(fuse::libtorch::view(torch::Tensor()),
                       "view: it is undefined", fuse::Error);
  CHECK_THROWS_AS(fuse::libtorch::view(fuse::Tensor()), fuse::Error);
  CHECK_THROWS_AS(fuse::libtorch::view(torch::ones({2}, torch::kByte)),
                  fuse::Error);
  CHECK_THROWS_WITH_AS(
      fuse::libtorch::view(fuse::full({512}, 1.0).to(fuse::block8)),
      "view: elements of the type block8 are not supported; LibTorch has no "
      "such type",
      fuse::Error);
}
