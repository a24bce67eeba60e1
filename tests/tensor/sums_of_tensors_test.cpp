#include "fusebook/tensor/sums_of_tensors.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fusebook/compile/compile.h"
#include "fusebook/cuda_sim/gpu_sim_block.h"
#include "fusebook/foreach/foreach.h"
#include "fusebook/nn/loss.h"
#include "fusebook/runtime/parallel.h"
#include "support/reduced.h"
#include "support/tested_device.h"
#include "support/testing.h"
#include "support/thread_count.h"

using namespace fuse;
using namespace testing;

namespace {

const Device gpu = tested_device();

// Borders of lanes (256) and of chunks (8192), and more chunks than the
// simulated device has blocks.
const std::vector<std::int64_t> sizes = {0,   1,    2,    255,  256,   257,
                                         511, 8191, 8192, 8193, 24581, 65537};

Tensor drawn(const Shape& shape, DType dtype, std::uint64_t seed) {
  Random random(seed);
  Tensor tensor = empty(shape, DType::float64, cpu_device);
  for (std::int64_t i = 0; i < tensor.numel(); ++i) {
    tensor.data<double>()[i] = random.uniform(-3, 5);
  }
  return tensor.to(dtype);
}

// The order of sums.h, once more: half the lanes that are left have been added
// to the others.
double sum_of_lanes(const std::vector<double>& lanes, std::size_t lane,
                    std::size_t left) {
  if (left == lanes.size()) return lanes[lane];
  return sum_of_lanes(lanes, lane, 2 * left) +
         sum_of_lanes(lanes, lane + left, 2 * left);
}

double sum_of_chunk(const std::vector<double>& values, std::size_t begin,
                    std::size_t end) {
  std::vector<double> lanes(256);
  for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
    for (std::size_t i = begin + lane; i < end; i += lanes.size()) {
      lanes[lane] += values[i];
    }
  }
  return sum_of_lanes(lanes, 0, 1);
}

double expected_sum(const std::vector<double>& values) {
  std::vector<double> chunks;
  for (std::size_t begin = 0; begin < values.size(); begin += 8192) {
    chunks.push_back(
        sum_of_chunk(values, begin, std::min(begin + 8192, values.size())));
  }
  return chunks.size() == 1 ? chunks[0]
                            : sum_of_chunk(chunks, 0, chunks.size());
}

// No sum here has more than 64 additions one after the other.
bool is_near(double sum, const std::vector<double>& values) {
  long double exact = 0;
  long double size = 0;
  for (const double value : values) {
    exact += value;
    size += std::abs(value);
  }
  return std::abs(sum - exact) <= 64 * 0x1p-53L * size;
}

std::vector<double> squares(const Tensor& a, const Tensor& b) {
  const auto left = a.to_vector();
  const auto right = b.to_vector();
  std::vector<double> all;
  for (std::size_t i = 0; i < left.size(); ++i) {
    all.push_back((left[i] - right[i]) * (left[i] - right[i]));
  }
  return all;
}

// The gradient that goes back from the loss, or from a sum.
template <class Loss>
Tensor gradient(const Tensor& output, Loss loss) {
  const Tensor leaf = output.detach().requires_grad_();
  loss(leaf).backward();
  return leaf.grad();
}

}  // namespace

TEST_CASE("sums have one order, on every device") {
  for (const DType dtype : reduced::all_dtypes) {
    for (const std::int64_t size : sizes) {
      CAPTURE(name_of(dtype));
      CAPTURE(size);
      const Tensor here = drawn({size}, dtype, 3);
      const double sum = sum_of(here);
      CHECK(same_value(sum, expected_sum(here.to_vector())));
      CHECK(is_near(sum, here.to_vector()));
      CHECK(same_value(sum_of(here.to(gpu)), sum));
      const Tensor rounded = here.to(gpu).sum();
      CHECK(rounded.dtype() == dtype);
      CHECK(rounded.device() == cpu_device);
      CHECK(same_value(rounded.item(), reduced::round(dtype, sum)));
    }
  }
}

TEST_CASE("sums of squared differences have that order") {
  for (const DType dtype : reduced::all_dtypes) {
    for (const std::int64_t size : sizes) {
      CAPTURE(name_of(dtype));
      CAPTURE(size);
      const Tensor a = drawn({size}, dtype, 5);
      const Tensor b = drawn({size}, dtype, 6);
      const double sum = sum_of_squared_differences(a, b);
      CHECK(same_value(sum, expected_sum(squares(a, b))));
      CHECK(is_near(sum, squares(a, b)));
      const double there = sum_of_squared_differences(a.to(gpu), b.to(gpu));
      CHECK(same_value(there, sum));
    }
  }
}

TEST_CASE("more chunks than lanes") {
  const Tensor here = drawn({300 * 8192 + 77}, DType::float16, 8);
  const double sum = sum_of(here);
  CHECK(same_value(sum, expected_sum(here.to_vector())));
  CHECK(same_value(sum_of(here.to(gpu)), sum));
}

TEST_CASE("neither threads nor the order of blocks move a bit of a sum") {
  const Tensor here = drawn({200003}, DType::float32, 4);
  const double sum = expected_sum(here.to_vector());
  for (const int count : {1, 2, 3, 7}) {
    const Threads threads(count);
    CHECK(same_value(sum_of(here), sum));
  }
  const Tensor there = here.to(gpu);
  for (const SimOrder order : {SimOrder::descending, SimOrder::shuffled}) {
    set_sim_order(order, 7);
    CHECK(same_value(sum_of(there), sum));
  }
  set_sim_order(SimOrder::ascending);
}

TEST_CASE("views are summed in the order of their elements") {
  for (const DType dtype : {DType::float32, DType::bfloat16}) {
    const Tensor here = drawn({90, 101}, dtype, 9);
    const Tensor there = here.to(gpu);
    const auto check = [&](auto view) {
      const double expected = expected_sum(view(here).to_vector());
      CHECK(same_value(sum_of(view(here)), expected));
      CHECK(same_value(sum_of(view(there)), expected));
    };
    check([](const Tensor& x) { return x.t(); });
    check([](const Tensor& x) { return x.slice(1, 1, 101, 3); });
    check([](const Tensor& x) { return x.narrow(0, 1, 88); });
    check([](const Tensor& x) { return x.narrow(0, 1, 1).expand({7, 101}); });
    check([](const Tensor& x) { return x.view({-1}).narrow(0, 1, 9000); });
  }
}

TEST_CASE("elements at any address of the host") {
  std::vector<char> memory(9000 * sizeof(double) + 1);
  Tensor odd = from_blob(memory.data() + 1, {9000}, DType::float64);
  odd.fill_(0.1);
  CHECK(same_value(sum_of(odd), expected_sum(odd.to_vector())));
}

TEST_CASE("numbers that break arithmetic") {
  const double infinity = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<std::vector<double>> all = {
      {-0.0, -0.0}, {infinity, 1},          {infinity, -infinity},
      {nan, 1},     {0x1p-1074, 0x1p-1074}, {0x1p+1023, 0x1p+1023}};
  for (const auto& values : all) {
    const Tensor here = tensor(values, DType::float64);
    CHECK(same_value(sum_of(here), 0.0 + values[0] + values[1]));
    CHECK(same_value(sum_of(here.to(gpu)), sum_of(here)));
  }
}

TEST_CASE("gradients of losses and sums on a device have the CPU's bits") {
  for (const DType dtype : reduced::all_dtypes) {
    for (const std::int64_t rows : {1, 3, 700}) {
      CAPTURE(name_of(dtype));
      CAPTURE(rows);
      const Tensor output = drawn({rows, 7}, dtype, 1);
      const Tensor target = drawn({rows, 7}, dtype, 2);
      const Tensor grad = gradient(
          output, [&](const Tensor& x) { return mse_loss(x, target); });
      const auto left = output.to_vector();
      const auto right = target.to_vector();
      for (std::size_t i = 0; i < left.size(); ++i) {
        const double exact =
            1.0 * 2 / double(left.size()) * (left[i] - right[i]);
        REQUIRE(grad.to_vector()[i] == reduced::round(dtype, exact));
      }
      const Tensor there = gradient(output.to(gpu), [&](const Tensor& x) {
        const Tensor loss = mse_loss(x, target.to(gpu));
        CHECK(bitwise_equal(loss, mse_loss(output, target)));
        return loss;
      });
      CHECK(there.device() == gpu);
      CHECK(bitwise_equal(there, grad));
      const Tensor ones =
          gradient(output.to(gpu), [](const Tensor& x) { return x.sum(); });
      CHECK(ones.device() == gpu);
      CHECK(bitwise_equal(ones, full({rows, 7}, 1, dtype, cpu_device)));
    }
  }
}

TEST_CASE("a loss of views, of one tensor twice, of tensors on two devices") {
  const Tensor output = drawn({40, 30}, DType::float32, 1);
  const Tensor target = drawn({30, 40}, DType::float32, 2);
  const Tensor there = output.to(gpu);
  const auto transposed = [](const Tensor& t) {
    return [t](const Tensor& x) { return mse_loss(x, t.t()); };
  };
  const Tensor grad = gradient(output, transposed(target));
  CHECK(bitwise_equal(gradient(there, transposed(target.to(gpu))), grad));
  CHECK(bitwise_equal(gradient(there, transposed(target)), grad));
  CHECK(bitwise_equal(gradient(output, transposed(target.to(gpu))), grad));
  const Tensor nothing =
      gradient(there, [](const Tensor& x) { return mse_loss(x, x); });
  CHECK(bitwise_equal(nothing, zeros({40, 30})));
}

TEST_CASE("what a recording still has to do to summed tensors is done first") {
  const Tensor x = drawn({50}, DType::float32, 1);
  const Tensor y = drawn({50}, DType::float32, 2);
  const auto run = [&](const Device& device) {
    const TensorList list({x.to(device).clone()});
    const Tensor target = y.to(device);
    std::vector<Tensor> results;
    auto step = compile([&] {
      foreach_add_(list, 1.0);
      results.push_back(list[0].sum());
      foreach_mul_(list, 3.0);
      results.push_back(mse_loss(list[0], target));
      foreach_mul_(list, 0.5);
    });
    step();
    CHECK(step.counters().launches == 3);
    CHECK(step.counters().graph_breaks == 2);
    results.push_back(list[0].cpu());
    return results;
  };
  CHECK(bitwise_equal(run(gpu), run(cpu_device)));
}

TEST_CASE("and so is what it has to do before a loss goes back") {
  const Tensor x = drawn({50}, DType::float32, 1);
  const Tensor y = drawn({50}, DType::float32, 2);
  for (const Device& device : {cpu_device, gpu}) {
    const Tensor target = y.to(device).clone();
    const TensorList list({target});
    Tensor grad;
    auto step = compile([&] {
      grad = gradient(x.to(device), [&](const Tensor& output) {
        const Tensor loss = mse_loss(output, target);
        foreach_add_(list, 1.0);
        return loss;
      });
      foreach_add_(list, 1.0);
    });
    step();
    CHECK(step.counters().graph_breaks == 1);
    const Tensor moved = foreach_add(TensorList({y}), 1.0)[0];
    const Tensor expected = gradient(
        x, [&](const Tensor& output) { return mse_loss(output, moved); });
    CHECK(bitwise_equal(grad, expected));
  }
}
