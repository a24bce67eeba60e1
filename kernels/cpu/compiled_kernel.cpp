#include <mutex>

#include "fusebook/cpu/cpu_kernel.h"
#include "fusebook/jit/jit.h"
#include "fusebook/prelude/host_math.h"

namespace fuse {
namespace {

class CompiledKernel final : public CpuKernel {
 public:
  CompiledKernel(std::shared_ptr<Library> library, bool reduces)
      : library_(std::move(library)),
        run_(reinterpret_cast<Run>(library_->symbol("fuse_run"))),
        finish_(reinterpret_cast<Finish>(library_->symbol("fuse_finish"))),
        reduce_(reduces
                    ? reinterpret_cast<Reduce>(library_->symbol("fuse_reduce"))
                    : nullptr) {
    const auto init =
        reinterpret_cast<void (*)(const Calls*)>(library_->symbol("fuse_init"));
    std::call_once(library_->prepared(), [&] { init(&host_calls); });
  }

 protected:
  void run(const Table& table, std::size_t part) override {
    const Launch launch = table.launch();
    run_(&launch, &table.parts()[part]);
  }
  void reduce(const Table& table, std::size_t /*part*/,
              IndexRange chunks) override {
    const Reducing work = table.reducing();
    reduce_(&work, chunks.begin, chunks.end);
  }
  void finish(const Table& table, i64 row) override {
    const Launch launch = table.launch();
    finish_(&launch, row);
  }

 private:
  using Run = void (*)(const Launch*, const Part*);
  using Finish = void (*)(const Launch*, i64);
  using Reduce = void (*)(const Reducing*, i64, i64);

  std::shared_ptr<Library> library_;
  Run run_;
  Finish finish_;
  Reduce reduce_;
};

}  // namespace

std::shared_ptr<Kernel> make_cpu_kernel(const std::string& source,
                                        bool reduces) {
  return std::make_shared<CompiledKernel>(build_library(source), reduces);
}

}  // namespace fuse
