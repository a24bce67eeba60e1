#include "convergence/comparison.h"

#include <algorithm>
#include <cstdio>
#include <numeric>

#include "fusebook/harness/provenance.h"
#include "fusebook/json/json.h"

namespace fuse::convergence {
namespace {

const Losses& float32_of(const std::vector<Losses>& all,
                         const std::string& rule) {
  return *std::find_if(all.begin(), all.end(), [&](const Losses& each) {
    return each.rule == rule && each.storage == storages()[0].name;
  });
}

void print_row(const Losses& losses, const Losses& wide) {
  const Beside found = beside(losses, wide);
  std::printf("%-8s %-20s %8.4f %8.4f to %6.4f %5d of %d %s\n",
              losses.rule.c_str(), losses.storage.c_str(), losses.mean(),
              found.low, found.high, int(found.seeds_within),
              int(losses.of_seeds.size()), found.holds ? "" : "outside");
  std::fflush(stdout);
}

}  // namespace

double Losses::mean() const {
  return std::accumulate(of_seeds.begin(), of_seeds.end(), 0.0) /
         double(of_seeds.size());
}

Beside beside(const Losses& losses, const Losses& wide) {
  const auto [low, high] =
      std::minmax_element(wide.of_seeds.begin(), wide.of_seeds.end());
  const auto within = [least = *low, most = *high](double loss) {
    return least <= loss && loss <= most;
  };
  return {*low, *high,
          std::count_if(losses.of_seeds.begin(), losses.of_seeds.end(), within),
          within(losses.mean())};
}

std::vector<Losses> train_all(const Text& text, const Wanted& wanted) {
  std::printf("%-8s %-20s %8s %18s %10s\n", "", "", "mean", "seeds of float32",
              "among them");
  std::vector<Losses> all;
  for (const Rule& rule : rules()) {
    for (const StorageKind& storage : storages()) {
      Losses losses{rule.name, storage.name, {}};
      for (int seed = 0; seed < wanted.seeds; ++seed) {
        losses.of_seeds.push_back(
            train(text, rule, storage, seed, wanted.steps).loss);
      }
      all.push_back(losses);
      print_row(losses, float32_of(all, rule.name));
    }
  }
  return all;
}

bool all_hold(const std::vector<Losses>& all) {
  return std::all_of(all.begin(), all.end(), [&](const Losses& each) {
    return beside(each, float32_of(all, each.rule)).holds;
  });
}

std::string json_of(const std::vector<Losses>& all, const Text& text,
                    const Wanted& wanted, const std::string& text_name) {
  const Provenance here = current_provenance();
  Json rows = Json::array();
  for (const Losses& each : all) {
    Json losses = Json::array();
    for (const double loss : each.of_seeds) losses.push_back(json_number(loss));
    rows.push_back({{"optimizer", each.rule},
                    {"storage", each.storage},
                    {"losses", losses}});
  }
  return json_text({{"device", here.device},
                    {"compiler", here.compiler},
                    {"system", here.system},
                    {"date", here.date},
                    {"text", text_name},
                    {"letters", text.codes().size()},
                    {"parameters", parameter_count()},
                    {"steps", wanted.steps},
                    {"seeds", wanted.seeds},
                    {"rows", rows}});
}

}  // namespace fuse::convergence
