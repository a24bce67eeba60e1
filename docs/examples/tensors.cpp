#include "example.h"

using namespace fuse;

EXAMPLE(views) {
  const Tensor t = tensor({0, 1, 2, 3, 4, 5}).view({2, 3});
  print(t.shape(), ", transposed ", t.t().shape());
  print(t.t().contiguous().view({6}));
  print(t.select(0, 1), " has the sum ", t.select(0, 1).sum());
  print("transposed twice, the same: ", bitwise_equal(t.t().t(), t));
}

EXAMPLE(copies) {
  const Tensor a = tensor({1.0, 2.0});
  Tensor handle = a;
  const Tensor copy = a.clone();
  handle.fill_(7);
  print(a, " ", copy);
  print("float16 takes ", a.to(DType::float16).nbytes(), " bytes, float64 ",
        a.to(DType::float64).nbytes());
}

EXAMPLE(from_blob) {
  std::vector<float> mine = {1, 2, 3, 4};
  const Tensor view = from_blob(mine.data(), {2, 2});
  foreach_mul_(TensorList{view}, 10);
  print("mine[3] is ", mine[3]);
}

EXAMPLE(random) {
  Generator first(0);
  Generator again(0);
  const bool same = bitwise_equal(rand({1000}, first), rand({1000}, again));
  print("equal seeds, equal numbers: ", same);
}

EXAMPLE(scalars) {
  Scalar plain = 0.1;
  Scalar in_a_tensor = tensor(0.1);
  plain.assign(0.2);
  in_a_tensor.assign(0.2);
  print(plain, " and ", in_a_tensor, " = ", plain + in_a_tensor);
}
