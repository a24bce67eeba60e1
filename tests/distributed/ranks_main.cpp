// What several processes do together; each of them runs all cases in the same
// order, under mpirun.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include "distributed/all_ranks.h"

int main(int argc, char** argv) {
  return fuse::run_ranks([&](fuse::Ranks& ranks) {
    given_ranks = &ranks;
    doctest::Context context(argc, argv);
    return context.run();
  });
}
