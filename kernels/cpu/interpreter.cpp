#include <vector>

#include "fusebook/cpu/cpu_kernel.h"
#include "fusebook/cpu/tile_program.h"
#include "fusebook/cpu/tile_runner.h"
#include "fusebook/prelude/cpu_loops.h"

namespace fuse {
namespace {

class Interpreter final : public CpuKernel {
 public:
  explicit Interpreter(const Plan& plan) : bodies_(plan.bodies) {
    for (const Body& body : bodies_) {
      direct_.push_back(make_tile_program(body, true));
      careful_.push_back(make_tile_program(body, false));
    }
  }

 protected:
  void prepare(std::size_t parts) override {
    while (runners_.size() < parts) runners_.push_back(make_runners());
  }

  void run(const Table& table, std::size_t part) override {
    const Launch launch = table.launch();
    std::vector<TileRunner>& runners = runners_[part];
    for (TileRunner& runner : runners) runner.start(launch, table.coincident());
    device::for_each_row(launch, table.parts()[part],
                         [&](const Row& row, i64 begin, i64 end, bool whole) {
                           runners[row.body].run(row, begin, end, whole);
                         });
  }

  void reduce(const Table& table, std::size_t part,
              IndexRange chunks) override {
    const Reducing work = table.reducing();
    std::vector<TileRunner>& runners = runners_[part];
    for (TileRunner& runner : runners) runner.start(work.table, false);
    for (i64 c = chunks.begin; c < chunks.end; ++c) {
      const ReducedChunk& chunk = work.chunks[c];
      const ReducedTensor& tensor = work.tensors[chunk.tensor];
      runners[std::size_t(tensor.body)].reduce(work, tensor, chunk.number);
    }
  }

  void finish(const Table& table, i64 row) override {
    const Launch launch = table.launch();
    const Row& bound = launch.rows[row];
    TileRunner& runner = runners_[0][bound.body];
    runner.start(launch, table.coincident());
    runner.finish(bound);
  }

 private:
  std::vector<TileRunner> make_runners() const {
    std::vector<TileRunner> runners;
    runners.reserve(bodies_.size());
    for (std::size_t b = 0; b < bodies_.size(); ++b) {
      runners.emplace_back(bodies_[b], direct_[b], careful_[b]);
    }
    return runners;
  }

  std::vector<Body> bodies_;
  std::vector<TileProgram> direct_;
  std::vector<TileProgram> careful_;
  std::vector<std::vector<TileRunner>> runners_;  // [part][body]
};

}  // namespace

std::shared_ptr<Kernel> make_interpreter(const Plan& plan) {
  return std::make_shared<Interpreter>(plan);
}

}  // namespace fuse
