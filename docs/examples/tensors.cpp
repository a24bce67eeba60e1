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

EXAMPLE(made_like_another) {
  const Shape shape = {2, 2};
  const Tensor x = full(shape, 3.0, float64);
  print(zeros_like(x).view({4}), " ", empty_like(x).shape(), " ",
        empty({3}, float16).shape());
  print(scalars(2)[1], " ", scalars_beside({x, x, x}).size(), " numbers");
}

EXAMPLE(close_or_equal) {
  const Tensor a = tensor({1.0, 2.0});
  const Tensor b = tensor({1.0, 2.000001});
  print("close: ", allclose(a, b), ", equal bits: ", bitwise_equal(a, b));
}

EXAMPLE(numbers_of_no_dimensions) {
  const Tensor a = tensor(6.0);
  const Tensor b = tensor(2.0);
  print(a + b, " ", a - b, " ", a * b, " ", a / b);
}

EXAMPLE(types) {
  for (const DType type : {float32, float64, float16, bfloat16, int16}) {
    print(name_of(type), ": ", size_of(type), " bytes, computes in ",
          name_of(compute_type(type)), ", 16 bits: ", is_reduced(type),
          ", a float of 16 bits: ", is_half(type));
  }
  print("float16 and bfloat16 meet in ", name_of(promote(float16, bfloat16)));
  print("nearest to 0.1: ", float(Float16(0.1F)), " ", float(BFloat16(0.1F)),
        ", nearest to 2.5: ", float(Int16(2.5F)));
}

EXAMPLE(types_in_blocks) {
  for (const DType type : {block8, ublock8}) {
    print(name_of(type), ": in blocks: ", in_blocks(type), ", of 1000 numbers ",
          bytes_of(type, 1000), " bytes, read as ", name_of(value_type(type)));
    print("with a sign: ", has_sign(type), ", blocks of ", block_size_of(type));
  }
  const DType small = with_block_size(block8, 128);
  print(name_of(small), ": blocks of ", block_size_of(small), ", ",
        bytes_of(small, 1000), " bytes; equal to block8: ", small == block8);
  print("blocks of 100: ", is_block_size(100),
        ", the largest: ", largest_block);
}

EXAMPLE(one_buffer) {
  const Tensor a = tensor({1.0, 2.0});
  const Tensor b = tensor({3.0});
  const Tensor all = flatten_({a, b});
  foreach_mul_(TensorList{all}, 10);
  print(a, " ", b);

  const Tensor elsewhere = zeros({2});
  move_tensors(std::vector<Move>{{a, elsewhere}}, "example");
  print(a, " ", all);
}

EXAMPLE(lent_and_borrowed) {
  const Tensor x = tensor({1.0, 2.0});
  const Tensor same = from_dlpack(to_dlpack(x));
  const Tensor too = from_dlpack(to_dlpack_unversioned(x));
  foreach_add_(TensorList{same}, 1);
  print(x, " ", too);
}

EXAMPLE(drawn) {
  Generator gen(0);
  const Tensor x = zeros({3});
  uniform_(x, -1, 1, gen);
  const auto values = x.to_vector();
  print("from -1 to 1: ", std::ranges::all_of(values, [](double value) {
          return -1 <= value && value < 1;
        }));
}

EXAMPLE(no_gradient) {
  const Tensor x = tensor({1.0, 3.0});
  x.requires_grad_();
  const NoGradGuard guard;
  print("has a gradient: ", wants_grad(mul(x, x)));
}
