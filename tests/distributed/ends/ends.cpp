// One rank of several ends, in one of several ways, while the others go on.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

#include "fusebook/distributed/sharded_checkpoint.h"
#include "fusebook/distributed/sharded_optimizer.h"
#include "fusebook/optim/all.h"

namespace {

struct Training {
  explicit Training(fuse::Ranks& ranks)
      : opt({weight}),
        sharded(ranks, opt, {.backend = fuse::Backend::interpreted}) {}

  void step(double max_norm) {
    weight.set_grad(fuse::full({10}, 1.0));
    sharded.add_gradients();
    sharded.step({.max_norm = max_norm});
  }

  fuse::Tensor weight = fuse::zeros({10});
  fuse::SGD opt;
  fuse::ShardedOptimizer sharded;
};

// Until it is killed.
int train_on(fuse::Ranks& ranks, const std::string& file) {
  Training training(ranks);
  std::printf("rank %d is process %d\n", ranks.rank(), int(getpid()));
  std::fflush(stdout);
  while (true) {
    training.step(1.0);
    save_checkpoint(file, training.sharded);
  }
}

int load(fuse::Ranks& ranks, const std::string& file) {
  Training training(ranks);
  load_checkpoint(file, training.sharded);
  if (training.opt.steps() > 0) std::puts("loaded");
  return 0;
}

int train(const std::string& how, fuse::Ranks& ranks, bool is_other) {
  Training training(ranks);
  for (int step = 0; step < 5; ++step) {
    const bool now = step == 3 && is_other;
    if (now && how == "throws") throw fuse::Error("no more data");
    if (now && how == "catches") {
      try {
        throw fuse::Error("no more data");
      } catch (const std::exception&) {
        return 1;
      }
    }
    if (now && how == "returns") return 0;
    if (now && how == "exits") std::exit(0);
    training.step(now && how == "differs" ? 2.0 : 1.0);
  }
  std::puts("done");
  return 0;
}

// Pairs of ranks, of which rank 1 or 3 does something else.
int train_in_pairs(const std::string& how, fuse::Ranks& ranks) {
  const bool is_other = ranks.rank() == (how == "differs" ? 3 : 1);
  if (how == "returns" && is_other) return 0;
  try {
    fuse::Ranks pair(ranks, 2);
    if (how == "throws" && !is_other) MPI_Barrier(ranks.communicator());
    if (how != "differs" && is_other) throw fuse::Error("no more data");
    train(how, pair, is_other);
  } catch (const fuse::RanksDisagree&) {
    throw;
  } catch (const fuse::Error&) {
    if (how == "throws") throw;
  }
  const fuse::Ranks pair(ranks, 2);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string how = argc > 1 ? argv[1] : "well";
  if (how == "without threads") MPI_Init(&argc, &argv);
  if (how == "ended") {
    MPI_Init(&argc, &argv);
    MPI_Finalize();
  }
  return fuse::run_ranks([&](fuse::Ranks& ranks) {
    if (how == "on") return train_on(ranks, argv[2]);
    if (how == "load") return load(ranks, argv[2]);
    if (how == "in pairs") return train_in_pairs(argv[2], ranks);
    return train(how, ranks, ranks.rank() == 2);
  });
}
