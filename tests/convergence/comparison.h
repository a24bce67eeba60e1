// Whether storages end where float32 does: among its own seeds.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "convergence/training.h"

namespace fuse::convergence {

/// The final losses of one optimizer with one storage, seed by seed.
struct Losses {
  std::string rule;
  std::string storage;
  std::vector<double> of_seeds;

  double mean() const;
};

/// A storage beside float32 of the same optimizer and seeds.
struct Beside {
  double low = 0;  ///< the least final loss of float32
  double high = 0;
  std::int64_t seeds_within = 0;
  /// Whether the mean over the seeds is within.
  bool holds = false;
};
Beside beside(const Losses& losses, const Losses& wide);

/// Every optimizer with every storage. Prints a line for each as it comes.
struct Wanted {
  int seeds = 5;
  int steps = 2000;
};
std::vector<Losses> train_all(const Text& text, const Wanted& wanted);

/// False if one does not hold.
bool all_hold(const std::vector<Losses>& all);
std::string json_of(const std::vector<Losses>& all, const Text& text,
                    const Wanted& wanted, const std::string& text_name);

}  // namespace fuse::convergence
