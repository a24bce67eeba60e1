// Files that other numbers of ranks go on from.
#include <doctest/doctest.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "distributed/run_testing.h"
#include "fusebook/distributed/sharded_checkpoint.h"
#include "fusebook/lr_scheduler/all.h"
#include "fusebook/optim/all.h"
#include "support/testing.h"

using namespace run_testing;
using testing::contains;

namespace {

const Model model = {{{{8192 * 9 + 3}, DType::float32},
                      {{7, 5}, DType::float32},
                      {{8192 + 1}, DType::bfloat16}}};

// A name that all ranks know.
std::string file_name() {
  const std::string own =
      "/tmp/fusebook-ranks-" + std::to_string(getpid()) + ".safetensors";
  return given_ranks->gather(own, &RankTraffic::agreement)[0];
}

// Some of the ranks, each of which is told its own.
template <class Work>
void on_first(int count, Work work) {
  const bool takes_part = given_ranks->rank() < count;
  MPI_Comm some = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, takes_part ? 0 : 1, given_ranks->rank(),
                 &some);
  if (takes_part) {
    Ranks ranks(some);
    work(ranks);
  }
  MPI_Comm_free(&some);
  MPI_Barrier(MPI_COMM_WORLD);
}

struct Parts {
  explicit Parts(Tensor bias_rate)
      : params(model.params()), opt(groups(params, std::move(bias_rate))) {
    opt.use_master_weights();
  }
  static std::vector<AdamW::Group> groups(const std::vector<Tensor>& params,
                                          Tensor bias_rate) {
    std::vector<AdamW::Group> all;
    all.emplace_back(std::vector{params[0], params[2]},
                     AdamWOptions{.amsgrad = true});
    all.emplace_back(std::vector{params[1]}, AdamWOptions{.lr = bias_rate});
    return all;
  }
  std::vector<Tensor> params;
  AdamW opt;
  ExponentialLR sched{opt, {.gamma = 0.75}};
};

void train(Ranks& ranks, const std::string& file, int first, int last) {
  Parts parts(tensor(0.01));
  ShardedOptimizer sharded(ranks, parts.opt, {.backend = Backend::interpreted});
  if (first > 0) load_checkpoint(file, sharded, {&parts.sched});
  for (int step = first; step < last; ++step) {
    for (int m = ranks.rank(); m < micro_gradients; m += ranks.size()) {
      model.add_gradients(parts.params, step, m);
      sharded.add_gradients();
    }
    sharded.step({.divide_by = 7, .max_norm = 0.5});
    parts.sched.step();
  }
  save_checkpoint(file, sharded, {&parts.sched});
}

}  // namespace

TEST_CASE("four ranks, two, one, three, and one process go on") {
  if (given_ranks->size() < 4) return;
  const std::string file = file_name();
  int step = 0;
  for (const int ranks : {4, 2, 1, 3}) {
    on_first(ranks, [&](Ranks& some) { train(some, file, step, step + 2); });
    step += 2;
  }
  Parts alone(tensor(0.01));
  for (int k = 0; k < step; ++k) {
    alone.opt.zero_grad();
    for (int m = 0; m < micro_gradients; ++m) {
      model.add_gradients(alone.params, k, m);
    }
    for (const TensorList& list : lists_of(alone.params)) {
      foreach_div_(list, 7.0);
    }
    clip_grad_norm_(alone.params, 0.5);
    alone.opt.step();
    alone.sched.step();
  }
  // What they saved is what one process has.
  Parts loaded(tensor(0.5));
  load_checkpoint(file, loaded.opt, {&loaded.sched});
  CHECK(bitwise_equal(loaded.params, alone.params));
  CHECK(loaded.opt.steps() == alone.opt.steps());
  CHECK(loaded.sched.get_last_lr() == alone.sched.get_last_lr());
  for (std::size_t p = 0; p < alone.params.size(); ++p) {
    const ParamStates states = alone.opt.states(alone.params[p]);
    CHECK(loaded.opt.states(loaded.params[p]).size() == states.size());
    for (const auto& [name, state] : states) {
      CAPTURE(name);
      CHECK(bitwise_equal(loaded.opt.state(loaded.params[p], name), state));
    }
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (given_ranks->rank() == 0) std::remove(file.c_str());
}

TEST_CASE("states in 8 bits are saved and loaded") {
  const std::string file = file_name();
  const Model large = {
      {{{8192 * 2}, DType::float32}, {{60, 100}, DType::float32}}};
  const auto make = [](std::vector<Tensor>& params) {
    auto opt = std::make_unique<AdamW>(params);
    opt->use_8bit_states();
    return opt;
  };
  auto params = large.params();
  const auto opt = make(params);
  ShardedOptimizer sharded(*given_ranks, *opt,
                           {.backend = Backend::interpreted});
  add_own_gradients(sharded, large, params, 0);
  sharded.step();
  save_checkpoint(file, sharded);
  auto again = large.params();
  const auto other = make(again);
  ShardedOptimizer second(*given_ranks, *other,
                          {.backend = Backend::interpreted});
  load_checkpoint(file, second);
  for (const auto& [name, run] :
       {std::pair{&sharded, &params}, std::pair{&second, &again}}) {
    add_own_gradients(*name, large, *run, 1);
    name->step();
  }
  CHECK(bitwise_equal(params, again));
  MPI_Barrier(MPI_COMM_WORLD);
  if (given_ranks->rank() == 0) std::remove(file.c_str());
}

TEST_CASE("a file that is not there, and one that cannot be written") {
  Parts parts(tensor(0.01));
  ShardedOptimizer sharded(*given_ranks, parts.opt,
                           {.backend = Backend::interpreted});
  const auto message = [&](auto action) {
    return testing::message_of<RanksDisagree>(action);
  };
  CHECK(contains(message([&] { load_checkpoint("/tmp/no/such", sharded); }),
                 "rank 0 failed in load_checkpoint at "));
  CHECK(contains(message([&] { save_checkpoint("/tmp/no/such", sharded); }),
                 "rank 0 failed in save_checkpoint at "));
  // It can go on.
  add_own_gradients(sharded, model, parts.params, 0);
  sharded.step();
}

TEST_CASE("after a step that failed, nothing is saved") {
  Parts parts(tensor(0.01));
  ShardedOptimizer sharded(*given_ranks, parts.opt,
                           {.backend = Backend::interpreted});
  const auto handle = parts.opt.register_step_pre_hook([](Optimizer&) {
    if (given_ranks->rank() == 0) throw Error("out of ink");
  });
  add_own_gradients(sharded, model, parts.params, 0);
  CHECK_THROWS_AS(sharded.step(), RanksDisagree);
  CHECK(contains(testing::message_of<Error>(
                     [&] { save_checkpoint(file_name(), sharded); }),
                 "an earlier step failed on some rank"));
}
