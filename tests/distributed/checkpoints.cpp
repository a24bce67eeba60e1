// Files that other numbers of ranks go on from.
#include <doctest/doctest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <string>

#include "distributed/run_testing.h"
#include "fusebook/distributed/sharded_checkpoint.h"
#include "fusebook/lr_scheduler/all.h"
#include "fusebook/optim/all.h"
#include "support/jit_testing.h"
#include "support/testing.h"

using namespace run_testing;
using testing::contains;

namespace {

const Model saved_model = {{{{8192 * 9 + 3}, DType::float32},
                            {{7, 5}, DType::float32},
                            {{8192 + 1}, DType::bfloat16}}};

// A name that all ranks know.
std::string file_name() {
  const std::string own =
      "/tmp/fusebook-ranks-" + std::to_string(getpid()) + ".safetensors";
  return given_ranks->gather(own, &RankTraffic::agreement)[0];
}

// For a scope, files of this process cannot grow longer, if the limit is not
// negative.
class ShortFiles {
 public:
  explicit ShortFiles(std::int64_t most) {
    getrlimit(RLIMIT_FSIZE, &before_);
    rlimit now = before_;
    if (most >= 0) now.rlim_cur = rlim_t(most);
    setrlimit(RLIMIT_FSIZE, &now);
  }
  ShortFiles(const ShortFiles&) = delete;
  ShortFiles& operator=(const ShortFiles&) = delete;
  ~ShortFiles() { setrlimit(RLIMIT_FSIZE, &before_); }

 private:
  rlimit before_{};
};

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
      : params(saved_model.params()),
        opt(groups(params, std::move(bias_rate))) {
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
      saved_model.add_gradients(parts.params, step, m);
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
      saved_model.add_gradients(alone.params, k, m);
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

namespace {

// What one process writes, and what all ranks do.
struct Saved {
  std::string name;
  Make make;
  DType dtype = DType::float32;
};

std::string text_of(const std::string& file) {
  return jit_testing::read_text(file);
}

// Temporary files.
bool is_part_beside(const std::string& file) {
  const std::filesystem::directory_iterator all("/tmp");
  return std::any_of(begin(all), end(all), [&](const auto& each) {
    return each.path().string().starts_with(file + ".part-");
  });
}

void check_bytes(const Saved& saved) {
  CAPTURE(saved.name);
  const Model some = {{{{8192 * 5 + 3}, saved.dtype},
                       {{7, 5}, saved.dtype},
                       {{96, 100}, saved.dtype},
                       {{8192 * 2 + 1}, saved.dtype},
                       {{}, saved.dtype}},
                      [](int, int, std::size_t p) { return p != 3; }};
  const std::string file = file_name();
  auto params = some.params();
  const auto opt = saved.make(params);
  ShardedOptimizer sharded(*given_ranks, *opt,
                           {.backend = Backend::interpreted});
  Run run{some, saved.make};
  run.options = {.divide_by = 7};
  run.steps = 2;
  for (int step = 0; step < run.steps; ++step) {
    add_own_gradients(sharded, some, params, step);
    sharded.step(run.options);
  }
  save_checkpoint(file, sharded);
  CHECK_FALSE(is_part_beside(file));
  const std::string other = file + "-" + std::to_string(given_ranks->rank());
  run.attach = [&](Optimizer& alone) {
    return [&](int step) {
      if (step + 1 == run.steps) save_checkpoint(other, alone);
    };
  };
  run.alone();
  CHECK((text_of(file) == text_of(other)));
  std::remove(other.c_str());
  MPI_Barrier(MPI_COMM_WORLD);
  if (given_ranks->rank() == 0) std::remove(file.c_str());
}

template <class O>
Make maker(std::function<void(O&)> change = [](O&) {}) {
  return [change](std::vector<Tensor> params) -> std::unique_ptr<Optimizer> {
    auto opt = std::make_unique<O>(std::move(params));
    change(*opt);
    return opt;
  };
}

}  // namespace

TEST_CASE("the file that ranks write together is that of one process") {
  check_bytes({"AdamW", maker<AdamW>()});
  check_bytes({"SGD", maker<SGD>()});
  check_bytes({"RMSprop", maker<RMSprop>()});
  check_bytes({"Adafactor", maker<Adafactor>()});
  check_bytes({"masters",
               maker<Adam>([](Adam& opt) { opt.use_master_weights(); }),
               DType::bfloat16});
  check_bytes({"split masters",
               maker<Adam>([](Adam& opt) { opt.use_split_masters(); }),
               DType::bfloat16});
  check_bytes({"stochastic rounding", maker<Adam>([](Adam& opt) {
                 opt.use_stochastic_rounding(true, 5);
               }),
               DType::bfloat16});
  check_bytes(
      {"8 bits", maker<Adam>([](Adam& opt) { opt.use_8bit_states(); })});
  check_bytes({"small blocks", maker<Adam>([](Adam& opt) {
                 opt.use_8bit_states(true, 4096, 64);
               })});
}

TEST_CASE("states stay with their ranks when they are saved") {
  const std::string file = file_name();
  std::array<std::int64_t, 2> sent{};
  for (std::size_t k = 0; k < 2; ++k) {
    const Model some = {
        {{{8192 * 16 * std::int64_t(k * 9 + 1)}, DType::float32}}};
    SharedTraining<Adam> training(some);
    training.step(0);
    const RankTraffic before = given_ranks->traffic();
    save_checkpoint(file, training.sharded);
    sent[k] = (given_ranks->traffic() - before).states;
  }
  // A few digits of sizes more, and names of a file.
  CHECK(sent[1] <= sent[0] + 16 * (given_ranks->size() - 1));
  CHECK(sent[1] < 4096 * given_ranks->size());
  MPI_Barrier(MPI_COMM_WORLD);
  if (given_ranks->rank() == 0) std::remove(file.c_str());
}

TEST_CASE("a rank that cannot write leaves the old file") {
  const std::string file = file_name();
  SharedTraining<Adam> training(saved_model);
  training.step(0);
  save_checkpoint(file, training.sharded);
  const std::string old = text_of(file);
  training.step(1);
  const int last = given_ranks->size() - 1;
  const std::string message = testing::message_of<RanksDisagree>([&] {
    const ShortFiles limit(given_ranks->rank() == last ? 1000 : -1);
    save_checkpoint(file, training.sharded);
  });
  CHECK(contains(message, "rank " + std::to_string(last) +
                              " failed in save_checkpoint at "));
  CHECK(contains(message, "cannot write '" + file + ".part-"));
  CHECK(contains(message, "File too large"));
  CHECK((text_of(file) == old));
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK_FALSE(is_part_beside(file));
  MPI_Barrier(MPI_COMM_WORLD);
  // It can go on.
  save_checkpoint(file, training.sharded);
  CHECK((text_of(file) != old));
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
  add_own_gradients(sharded, saved_model, parts.params, 0);
  sharded.step();
}

TEST_CASE("after a step that failed, nothing is saved") {
  Parts parts(tensor(0.01));
  ShardedOptimizer sharded(*given_ranks, parts.opt,
                           {.backend = Backend::interpreted});
  const auto handle = parts.opt.register_step_pre_hook([](Optimizer&) {
    if (given_ranks->rank() == 0) throw Error("out of ink");
  });
  add_own_gradients(sharded, saved_model, parts.params, 0);
  CHECK_THROWS_AS(sharded.step(), RanksDisagree);
  CHECK(contains(testing::message_of<Error>(
                     [&] { save_checkpoint(file_name(), sharded); }),
                 "an earlier step failed on some rank"));
}
