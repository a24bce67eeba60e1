// Random programs, compiled, interpreted and run one operation at a time; all
// three must give the bits of plain loops over single elements, and each
// operation what its row promises about its own operands.
//
//   FUSEBOOK_FUZZ=10000         that many programs, new ones at every run
//   FUSEBOOK_FUZZ_SEED=SEED     the one program with that seed
//
// Its last test case is only run when it is asked for, with
// FUSEBOOK_KEEP_SOURCE=FOLDER: it leaves the programs' sources there.
#include <doctest/doctest.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "fusebook/compile/compile.h"
#include "fusebook/compile/run_eagerly.h"
#include "fusebook/cuda_sim/gpu_sim_block.h"
#include "fusebook/runtime/parallel.h"
#include "ir/random_case.h"
#include "ir/random_script.h"
#include "support/sim_device.h"
#include "support/strided_testing.h"

using namespace fuse;
using namespace random_programs;
using testing::odd_sim_devices;
using testing::OtherSimDevice;

namespace {

const std::vector<int> thread_counts =
    sanitized ? std::vector{1, 3, most_threads}
              : std::vector{1, 2, 3, 8, most_threads};

/// Cases that become one kernel.
class Batch {
 public:
  explicit Batch(const std::vector<std::uint64_t>& seeds) {
    for (const std::uint64_t seed : seeds) {
      cases_.push_back(
          std::make_unique<Case>(seed, ScriptMaker(script_seed(seed)).make()));
    }
  }

  /// One run that compiles nothing, but generates the source.
  void generate() { interpreted_(); }

  /// The first run, in which the kernel is compiled.
  void warm_up() {
    reset();
    compiled_();
    reset();
    simulated()();
  }

  void check(int threads) {
    set_thread_count(threads);
    // A GPU's code knows nothing of threads of ours: other orders instead.
    set_sim_order(SimOrder(threads % 3), std::uint64_t(threads));
    if (threads <= 3) check_simulated(std::size_t(threads));
    check_mode("eager", [&] { play(); });
    check_mode("interpreted", [&] { interpreted_(); });
    check_mode("replayed", [&] { replay_all(); });
    check_mode("compiled", [&] { compiled_(); });
  }

  const std::vector<std::unique_ptr<Case>>& cases() const { return cases_; }
  Counters counters() const { return compiled_.counters(); }

 private:
  struct Player {
    Batch* batch;
    void operator()() const { batch->play(); }
  };

  // Runs what was recorded one operation at a time.
  struct Replayer final : Executor {
    Replayer() { eager.set_eager(); }
    void execute(const Program& program) override { replay(program, eager); }
    void graph_break(const std::string& why) override { FAIL(why); }
    Function eager{{.backend = Backend::interpreted}};
  };

  Compiled<Player> simulated() {
    return compile(Player{this}, {.backend = Backend::simulated});
  }
  void check_simulated(std::size_t number) {
    const OtherSimDevice other(
        odd_sim_devices()[number % odd_sim_devices().size()]);
    auto step = simulated();
    check_mode("on a simulated GPU", [&] { step(); });
  }

  void play() {
    for (const auto& each : cases_) each->play();
  }
  void replay_all() {
    Replayer replayer;
    Recorder recorder(replayer, true);
    {
      const Recording recording(recorder);
      play();
    }
    recorder.finish();
  }
  void reset() {
    for (const auto& each : cases_) each->reset();
  }

  template <class Run>
  void check_mode(const std::string& mode, Run run) {
    reset();
    run();
    for (const auto& each : cases_) check_case(*each, mode);
  }

  std::vector<std::unique_ptr<Case>> cases_;
  Compiled<Player> compiled_ = compile(Player{this});
  Compiled<Player> interpreted_ =
      compile(Player{this}, {.backend = Backend::interpreted});
};

// Compiles on two threads: that is where the time goes.
void warm_up(std::vector<std::unique_ptr<Batch>>& batches) {
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t b = next++; b < batches.size(); b = next++) {
      batches[b]->warm_up();
    }
  };
  std::thread other(work);
  work();
  other.join();
}

/// What the programs of a run were made of.
class Coverage {
 public:
  void add(const Case& each) {
    add_steps(each.script());
    for (const std::int64_t n : each.sizes()) sizes_[n]++;
    for (const Values& list : each.initial()) {
      for (const auto& tensor : list) add_values(tensor);
    }
    if (each.is_unaligned()) ++unaligned_;
    for (const auto& [key, count] : each.bounds()) bounds_[key] += count;
    add_lies(each);
    if (each.repeats()) add_broadcasts(each.script());
  }

  void check() const {
    for (const OpCode op :
         {OpCode::sum, OpCode::sum_of_squares, OpCode::total_sum,
          OpCode::total_sum_of_squares, OpCode::total_amax}) {
      INFO(name_of(op));
      CHECK(forms_.count({op, false}) == 1);
    }
    check_broadcasts();
    check_operations();
    check_lies();
    check_sizes();
    CHECK(unaligned_ > 100);
    CHECK(pairs_.size() == 10);
    for (const DType from : reduced::all_dtypes) {
      for (const DType to : reduced::all_dtypes) {
        if (reduced::common_type({from, to}) != from) continue;
        INFO(std::string(name_of(from))
             << " into " << std::string(name_of(to)));
        CHECK(stores_.count({from, to}) == 1);
      }
    }
    for (const char* const kind :
         {"nan", "inf", "-inf", "-0", "0", "denormal", "-denormal"}) {
      INFO(kind);
      CHECK(values_.count(kind) == 1);
    }
  }

 private:
  // What is strided in fact: a small tensor may be contiguous, however it was
  // made.
  void add_lies(const Case& each) {
    bool strided = false;
    bool contiguous = false;
    bool many = false;
    for (std::size_t r = 0; r < each.lists().size(); ++r) {
      if (each.script().registers[r].rate != Rate::element) continue;
      const ListImpl& list = *each.lists()[r].impl();
      (list.layouts.empty() ? contiguous : strided) = true;
      if (list.layouts.empty()) continue;
      lies_[each.register_lies()[r]]++;
      for (const std::int64_t n : list.numels) many = many || n == size_for_all;
    }
    if (strided) (contiguous ? mixed_ : all_strided_)++;
    if (many) ++large_strided_;
  }

  // Where smaller tensors meet others: in new lists or in place, from memory or
  // computed by the same program.
  void add_broadcasts(const Script& script) {
    for (const Step& step : script.steps) {
      if (result_of(script.registers, step).is_small && step.target < 0)
        continue;
      for (const Input& in : step.in) {
        if (in.kind != Kind::list) continue;
        if (!script.registers[std::size_t(in.index)].is_small) continue;
        broadcasts_[{step.target >= 0, in.index < script.in_memory}]++;
        broadcast_operations_.insert(step.op);
      }
    }
  }

  void check_broadcasts() const {
    CHECK(broadcast_operations_.size() > 15);
    for (const bool in_place : {false, true}) {
      for (const bool from_memory : {false, true}) {
        INFO(in_place << ", " << from_memory);
        const auto at = broadcasts_.find({in_place, from_memory});
        CHECK(at != broadcasts_.end());
        if (at != broadcasts_.end()) CHECK(at->second > 3);
      }
    }
  }

  void check_lies() const {
    for (const Lie lie : {Lie::transposed, Lie::stepped, Lie::narrowed}) {
      INFO(int(lie));
      CHECK(lies_.count(lie) == 1);
      if (lies_.count(lie) == 1) CHECK(lies_.at(lie) > 50);
    }
    CHECK(mixed_ > 50);
    CHECK(all_strided_ > 50);
    CHECK(large_strided_ > 0);
  }

  void add_steps(const Script& script) {
    for (const Step& step : script.steps) {
      std::set<DType> met;
      for (const Input& in : step.in) {
        kinds_[{step.op, kind_of(script, in)}]++;
        if (kind_of(script, in) != 0) continue;
        met.insert(script.registers[std::size_t(in.index)].dtype);
      }
      if (met.size() == 2) pairs_.insert({*met.begin(), *met.rbegin()});
      const Register result = result_of(script.registers, step);
      rates_[{step.op, result.rate == Rate::element, result.dtype}]++;
      if (step.target < 0 || result.rate != Rate::element) continue;
      const Register& target = script.registers[std::size_t(step.target)];
      stores_.insert({result.dtype, target.dtype});
    }
    for (const Step& step : script.steps) {
      forms_[{step.op, step.target >= 0}]++;
    }
  }

  // Denormals are those of float32: they are numbers of both types.
  static const char* kind_of(double value) {
    if (std::isnan(value)) return "nan";
    if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
    const bool negative = std::signbit(value);
    if (value == 0) return negative ? "-0" : "0";
    if (std::fabs(value) >= 0x1p-126) return "ordinary";
    return negative ? "-denormal" : "denormal";
  }
  void add_values(const std::vector<double>& tensor) {
    for (const double value : tensor) values_[kind_of(value)]++;
  }

  // Empty, one element, around vectors and tiles, every tail, and one with work
  // for all threads.
  void check_sizes() const {
    for (const std::int64_t n :
         {std::int64_t(0), std::int64_t(1), std::int64_t(7), std::int64_t(9),
          std::int64_t(511), std::int64_t(513), size_for_all}) {
      INFO(n);
      CHECK(sizes_.count(n) == 1);
    }
    std::set<std::int64_t> tails;
    for (const auto& [n, count] : sizes_) tails.insert(n % 8);
    CHECK(tails.size() == 8);
  }

  void check_operations() const {
    for (int i = 0; i < op_count; ++i) {
      const auto op = OpCode(i);
      INFO(name_of(op));
      for (const DType dtype : reduced::all_dtypes) {
        INFO(name_of(dtype));
        CHECK(rates_.count({op, true, dtype}) == 1);
      }
      CHECK(rates_.count({op, false, DType::float64}) == 1);
      CHECK(forms_.count({op, true}) == 1);
      CHECK(forms_.count({op, false}) == 1);
      for (const DType dtype : reduced::all_dtypes) {
        INFO(std::string(name_of(dtype)));
        const auto tested = bounds_.find({op, dtype});
        CHECK(tested != bounds_.end());
        if (tested != bounds_.end()) CHECK(tested->second > 100);
      }
      // Elements, per-tensor scalars, and the three kinds of numbers; those
      // only where a list can stand beside them.
      const int kinds = info(op).arity > 1 || is_move(op) ? 5 : 2;
      for (int kind = 0; kind < kinds; ++kind) {
        INFO("operand of kind " << kind);
        CHECK(kinds_.count({op, kind}) == 1);
      }
    }
  }

  static int kind_of(const Script& script, const Input& in) {
    if (in.kind != Kind::list) return 1 + int(in.kind);
    const Register& reg = script.registers[std::size_t(in.index)];
    return reg.rate == Rate::element ? 0 : 1;
  }

  std::map<std::tuple<OpCode, bool, DType>, int> rates_;
  std::map<std::pair<OpCode, bool>, int> forms_;
  std::map<std::pair<OpCode, int>, int> kinds_;
  std::set<std::pair<DType, DType>> pairs_;   // that met as operands
  std::set<std::pair<DType, DType>> stores_;  // of a result into a list
  std::map<std::int64_t, int> sizes_;
  std::map<std::string, int> values_;
  BoundCounts bounds_;
  int unaligned_ = 0;
  std::map<Lie, int> lies_;  // of lists that are strided
  int mixed_ = 0;            // programs with strided lists and others
  int all_strided_ = 0;
  int large_strided_ = 0;
  std::map<std::pair<bool, bool>, int> broadcasts_;
  std::set<OpCode> broadcast_operations_;
};

/// The seeds that every ordinary run has.
constexpr std::uint64_t first_seed = 1 << 20;

void run(const std::vector<std::uint64_t>& seeds, Coverage* coverage) {
  // A few batches at a time, so that memory stays small.
  constexpr std::size_t at_once = 40 * in_a_batch;
  for (std::size_t first = 0; first < seeds.size(); first += at_once) {
    const std::size_t last = std::min(first + at_once, seeds.size());
    std::vector<std::unique_ptr<Batch>> batches;
    for (std::size_t i = first; i < last; i += in_a_batch) {
      const auto begin = seeds.begin() + std::ptrdiff_t(i);
      const auto end =
          seeds.begin() + std::ptrdiff_t(std::min(i + in_a_batch, last));
      batches.push_back(
          std::make_unique<Batch>(std::vector<std::uint64_t>(begin, end)));
    }
    set_thread_count(1);
    warm_up(batches);
    for (auto& batch : batches) {
      for (const int threads : thread_counts) batch->check(threads);
      const Counters counters = batch->counters();
      REQUIRE(counters.compilations == 1);
      REQUIRE(counters.launches == 1 + std::int64_t(thread_counts.size()));
      REQUIRE(counters.graph_breaks == 0);
      if (coverage == nullptr) continue;
      for (const auto& each : batch->cases()) coverage->add(*each);
    }
  }
  set_thread_count(0);
}

}  // namespace

TEST_CASE("compiled, interpreted and eager have the bits of plain loops") {
  if (std::getenv("FUSEBOOK_FUZZ_SEED") != nullptr) {
    const std::uint64_t seed = number_from("FUSEBOOK_FUZZ_SEED", 0);
    std::printf("program %s\n%s", std::to_string(seed).c_str(),
                describe(ScriptMaker(script_seed(seed)).make()).c_str());
    run(script_seed(seed) == seed ? std::vector{seed}
                                  : std::vector{seed - 1, seed},
        nullptr);
    return;
  }
  const bool longer = std::getenv("FUSEBOOK_FUZZ") != nullptr;
  const std::size_t count = number_from("FUSEBOOK_FUZZ", 1000);
  REQUIRE(count >= 1000);
  const std::uint64_t first = longer
                                  ? std::uint64_t(std::random_device()()) << 20
                                  : number_from("TESTBASE", 1) << 20;
  std::printf("%zu random programs with seeds from FUSEBOOK_FUZZ_SEED=%s\n",
              count, std::to_string(first).c_str());
  std::vector<std::uint64_t> seeds;
  for (std::size_t i = 0; i < count; ++i) seeds.push_back(first + i);
  Coverage coverage;
  run(seeds, &coverage);
  coverage.check();
}

TEST_CASE("the sources of random programs are kept" * doctest::skip()) {
  REQUIRE(std::getenv("FUSEBOOK_KEEP_SOURCE") != nullptr);
  const std::size_t count = number_from("FUSEBOOK_FUZZ", 1000);
  for (std::size_t i = 0; i < count; i += in_a_batch) {
    std::vector<std::uint64_t> seeds;
    for (std::size_t k = i; k < std::min(i + in_a_batch, count); ++k) {
      seeds.push_back(first_seed + k);
    }
    Batch(seeds).generate();
  }
}
