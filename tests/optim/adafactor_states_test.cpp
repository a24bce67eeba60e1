// Adafactor beside torch's, and what it keeps.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "fusebook/checkpoint/checkpoint.h"
#include "fusebook/jit/scratch_directory.h"
#include "fusebook/optim/adafactor.h"
#include "fusebook/support/error.h"
#include "support/step_testing.h"

using namespace fuse;
using namespace step_testing;
using testing::contains;
using testing::message_of;
using testing::Random;

namespace {

using Params = std::vector<Tensor>;

const std::vector<Shape> small_shapes = {{7},    {},     {0},
                                         {5, 3}, {3, 0}, {2, 3, 4}};

void set_grads(const Params& params, int step) {
  Random random(std::uint64_t(step) + 10);
  for (const Tensor& param : params) {
    assign(param.grad(),
           random_tensor(param.shape(), random, 0, DType::float64).to_vector());
  }
}

std::string refusal(const AdafactorOptions& options) {
  return message_of<Error>(
      [&] { const Adafactor made({zeros({2, 2})}, options); });
}

// ---- torch ------------------------------------------------------------------

using Settings = std::map<std::string, double>;
using Result = std::pair<std::string, std::vector<double>>;

AdafactorOptions options_of(const Settings& settings) {
  AdafactorOptions o;
  o.lr = settings.at("lr");
  o.beta2_decay = settings.at("beta2_decay");
  o.eps = {settings.at("eps0"), settings.at("eps1")};
  o.d = settings.at("d");
  o.weight_decay = settings.at("weight_decay");
  o.maximize = settings.at("maximize") != 0;
  return o;
}

std::vector<double> numbers_of(std::int64_t count, int factor, int offset,
                               int period, double unit) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t half = period / 2;
    values.push_back(double((i * factor + offset) % period - half) / unit);
  }
  return values;
}

void compare(DType dtype, const Shape& shape, double middle,
             const Settings& settings, const std::vector<Result>& results) {
  CAPTURE(to_string(shape));
  const Tensor param = zeros(shape, dtype);
  Tensor(param).set_grad(zeros(shape, dtype));
  assign(param, numbers_of(param.numel(), 37, 11, 101, 64));
  Adafactor adafactor({param}, options_of(settings));
  for (int step = 0; step < 5; ++step) {
    auto grads = numbers_of(param.numel(), 29, step * 17 + 5, 89, 32);
    if (middle != 0 && step == 0) grads[grads.size() / 2] = middle;
    assign(param.grad(), grads);
    adafactor.step();
  }
  const double near = dtype == DType::float64 ? 1e-12 : 3e-6;
  CHECK(adafactor.states(param).size() == results.size());
  for (const auto& [name, wanted] : results) {
    CAPTURE(name);
    const Tensor kept = name == "param" ? param : adafactor.state(param, name);
    REQUIRE(kept.defined());
    const std::vector<double> values = kept.to_vector();
    REQUIRE(values.size() == wanted.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      CAPTURE(i);
      const bool same = values[i] == wanted[i] ||
                        (std::isnan(values[i]) && std::isnan(wanted[i]));
      const double off = std::abs(values[i] - wanted[i]);
      CHECK((same || off <= near * std::max(1.0, std::abs(wanted[i]))));
    }
  }
}

}  // namespace

TEST_CASE("states and parameters are those of torch") {
#define CASE(dtype, shape, middle, settings, ...) \
  compare(DType::dtype, Shape shape, middle, Settings settings, {__VA_ARGS__});
#include "support/torch_adafactor.inc"
#undef CASE
}

TEST_CASE("states have the shapes of rows and columns") {
  const Params params = make_params({{5, 3}, {4}, {2, 3, 4}}, 6);
  Adafactor adafactor(params);
  adafactor.step();
  CHECK(adafactor.state(params[0], "row_var").shape() == Shape{5, 1});
  CHECK(adafactor.state(params[0], "col_var").shape() == Shape{1, 3});
  CHECK(!adafactor.state(params[0], "variance").defined());
  CHECK(adafactor.state(params[1], "variance").shape() == Shape{4});
  CHECK(!adafactor.state(params[1], "row_var").defined());
  CHECK(adafactor.state(params[2], "row_var").shape() == Shape{2, 3, 1});
  CHECK(adafactor.state(params[2], "col_var").shape() == Shape{2, 1, 4});
  // Floats of factors and squares, and counts of 8 bytes.
  CHECK(adafactor.memory().states == 4 * (5 + 3 + 4 + 6 + 8) + 3 * 8);
}

TEST_CASE("a run goes on from its states") {
  const Params params = make_params(small_shapes, 4);
  const AdafactorOptions options{.lr = 0.1};
  Adafactor adafactor(params, options);
  set_grads(params, 0);
  adafactor.step();
  const Params in_memory = copies(params);
  Adafactor loaded(in_memory);
  loaded.load_state_dict(adafactor.state_dict());
  const ScratchDirectory folder;
  const std::string path = folder.path() + "/run.safetensors";
  save_checkpoint(path, adafactor);
  const Params from_file = make_params(small_shapes, 5);
  Adafactor resumed(from_file);
  load_checkpoint(path, resumed);
  for (int n = 1; n < 4; ++n) {
    for (const Params& each : {params, in_memory, from_file}) {
      set_grads(each, n);
    }
    for (Adafactor* const each : {&adafactor, &loaded, &resumed}) {
      each->step();
    }
  }
  CHECK(same_bits(in_memory, params));
  CHECK(same_bits(from_file, params));
}

TEST_CASE("states of other shapes are refused") {
  const Params matrix = make_params({{5, 3}}, 4);
  const Params other = make_params({{3, 5}}, 4);
  const Params vector = make_params({{15}}, 4);
  Adafactor a(matrix);
  Adafactor b(other);
  Adafactor c(vector);
  a.step();
  c.step();
  const auto refused = [](Adafactor& to, Adafactor& from) {
    return message_of<Error>([&] { to.load_state_dict(from.state_dict()); });
  };
  CHECK(contains(refused(b, a), "col_var has shape [1, 3]"));
  CHECK(contains(refused(b, a), "must have shape [1, 5]"));
  CHECK(contains(refused(c, a),
                 "col_var is not a state of a parameter with shape [15]"));
  CHECK(contains(refused(b, c),
                 "variance is not a state of a parameter with shape [3, 5]"));
}

TEST_CASE("parameters in 16 bits, with masters and with states in 8 bits") {
  const std::vector<Shape> shapes = {{8, 12}, {5000}};
  const Params params = make_params(shapes, 3, DType::bfloat16);
  Params exact;
  for (const Tensor& each : params) {
    exact.push_back(each.to(DType::float32).clone());
    exact.back().set_grad(each.grad().to(DType::float32).clone());
  }
  Adafactor adafactor(params);
  adafactor.use_master_weights();
  Adafactor wide(exact);
  for (int n = 0; n < 5; ++n) {
    adafactor.step();
    wide.step();
  }
  CHECK(adafactor.state(params[0], "row_var").dtype() == DType::float32);
  for (std::size_t p = 0; p < params.size(); ++p) {
    CHECK(bitwise_equal(adafactor.master_params()[p], exact[p]));
  }
  adafactor.use_8bit_states();
  adafactor.step();
  CHECK(adafactor.state(params[0], "row_var").dtype() == DType::float32);
  CHECK(adafactor.state(params[1], "variance").dtype() == DType::ublock8);
}

TEST_CASE("averages of rows and columns are never in 8 bits") {
  const Params params = make_params({{5000, 1}, {1, 5000}, {5000}}, 3);
  const Params wide = copies({params[0], params[1]});
  Adafactor adafactor(params);
  adafactor.use_8bit_states();
  Adafactor plain(wide);
  for (int n = 0; n < 3; ++n) {
    adafactor.step();
    plain.step();
  }
  CHECK(adafactor.state(params[0], "row_var").dtype() == DType::float32);
  CHECK(adafactor.state(params[1], "col_var").dtype() == DType::float32);
  CHECK(adafactor.state(params[2], "variance").dtype() == DType::ublock8);
  CHECK(same_bits({params[0], params[1]}, wide));
}

TEST_CASE("options are torch's, and what it refuses is refused") {
  const AdafactorOptions o;
  CHECK(o.lr.value() == 1e-2);
  CHECK(o.beta2_decay.value() == -0.8);
  CHECK(o.eps[0].value() == AdafactorOptions::none);
  CHECK(o.eps[1].value() == 1e-3);
  CHECK(o.d.value() == 1.0);
  CHECK(o.weight_decay.value() == 0.0);
  CHECK(!o.maximize);
  CHECK(refusal({.lr = -1.0}) == "Adafactor: invalid learning rate: -1");
  CHECK(refusal({.beta2_decay = 0.5}) == "Adafactor: invalid beta2_decay: 0.5");
  CHECK(refusal({.eps = {-2.0, 0.0}}) == "Adafactor: invalid epsilon1: -2");
  CHECK(refusal({.eps = {0.0, -1.0}}) == "Adafactor: invalid epsilon2: -1");
  CHECK(refusal({.d = 0.5}) == "Adafactor: invalid clipping threshold d: 0.5");
  CHECK(refusal({.weight_decay = -1.0}) ==
        "Adafactor: invalid weight_decay value: -1");
}
