// Also the program that goes on with a run in a fresh process:
//   checkpoint_test resume FOLDER   what "runs go on in a fresh process" saved
//   checkpoint_test write FILE      a small checkpoint, for other languages
//   checkpoint_test read FILE       loads that one
#define DOCTEST_CONFIG_IMPLEMENT
#include "fusebook/checkpoint/checkpoint.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "fusebook/optim/all.h"
#include "fusebook/support/content_hash.h"
#include "fusebook/support/error.h"
#include "support/checkpoint_testing.h"

using namespace checkpoint_testing;
using jit_testing::read_text;
using jit_testing::TempDir;
using jit_testing::write_text;
using testing::contains;
using testing::message_of;

namespace {

constexpr int kSaved = 7;
constexpr int kLast = 20;

// ---- the fresh process ------------------------------------------------------

int resume_one(const std::string& folder, const Kind& kind,
               const ScheduleRow& row, bool tensors, const std::string& name) {
  Run run(kind, row, tensors);
  auto step = compile([&] { run.opt->step(); }, {.fullgraph = true});
  load_checkpoint(folder + "/" + name, *run.opt, {&run.sched.scheduler()});
  run.train(step, kSaved + 1, kLast);
  const bool same = bits_of(run) == read_text(folder + "/" + name + ".bits");
  const Counters counters = step.counters();
  if (same && counters.compilations == 1 && counters.recompiles == 0) return 0;
  std::printf("%s, %s, %s: %s, %ld compilations, %ld recompiles\n",
              kind.name.c_str(), row.name.c_str(),
              tensors ? "tensors" : "numbers", same ? "equal" : "DIFFERENT",
              long(counters.compilations), long(counters.recompiles));
  return 1;
}

int resume_all(const std::string& folder) {
  int wrong = 0;
  int count = 0;
  for_each_run([&](const Kind& kind, const ScheduleRow& row, bool tensors,
                   const std::string& name) {
    wrong += resume_one(folder, kind, row, tensors, name);
    ++count;
  });
  std::printf("%d runs, %d wrong\n", count, wrong);
  return wrong == 0 ? 0 : 1;
}

// ---- a checkpoint for other languages ---------------------------------------

struct Sample {
  Sample() {
    Tensor weight = zeros({2, 3});
    for (std::size_t i = 0; i < 6; ++i) weight.data<float>()[i] = float(i) / 4;
    weight.set_grad(full({2, 3}, 1));
    std::vector<Adam::Group> groups;
    groups.emplace_back(std::vector{weight},
                        AdamOptions{.lr = tensor(0.25), .amsgrad = true});
    groups.emplace_back(std::vector{full({}, 1e300, DType::float64)},
                        AdamOptions{.lr = 0.1});
    opt = std::make_unique<Adam>(std::move(groups));
    sched = std::make_unique<ReduceLROnPlateau>(*opt);
  }
  std::unique_ptr<Adam> opt;
  std::unique_ptr<ReduceLROnPlateau> sched;
};

int write_sample(const std::string& path) {
  Sample sample;
  sample.opt->step();
  save_checkpoint(path, *sample.opt, {sample.sched.get()});
  return 0;
}

int read_sample(const std::string& path) {
  Sample sample;
  load_checkpoint(path, *sample.opt, {sample.sched.get()});
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::map<std::string, int (*)(const std::string&)> commands = {
      {"resume", resume_all}, {"write", write_sample}, {"read", read_sample}};
  const auto command = argc == 3 ? commands.find(argv[1]) : commands.end();
  if (command == commands.end()) return doctest::Context(argc, argv).run();
  try {
    return command->second(argv[2]);
  } catch (const Error& error) {
    std::printf("%s\n", error.what());
    return 1;
  }
}

namespace {

std::vector<const void*> addresses_of(Optimizer& opt) {
  std::vector<const void*> all;
  for (std::size_t g = 0; g < opt.group_count(); ++g) {
    for (std::size_t i = 0; i < opt.group(g).params.size(); ++i) {
      all.push_back(opt.group(g).params[i].raw_data());
      for (const auto& [name, tensor] : opt.states(opt.group(g).params[i])) {
        all.push_back(tensor.raw_data());
      }
    }
  }
  return all;
}

// Trains to the end, saves on the way, and notes the bits of the end.
void train_and_save(const std::string& file, const Kind& kind,
                    const ScheduleRow& row, bool tensors) {
  Run run(kind, row, tensors);
  auto step = compile([&] { run.opt->step(); });
  run.train(step, 1, kSaved);
  save_checkpoint(file, *run.opt, {&run.sched.scheduler()});
  run.train(step, kSaved + 1, kLast);
  write_text(file + ".bits", bits_of(run));
}

}  // namespace

TEST_CASE("runs go on in a fresh process: the same bits, one compilation") {
  const TempDir dir;
  for_each_run([&](const Kind& kind, const ScheduleRow& row, bool tensors,
                   const std::string& name) {
    train_and_save(dir / name, kind, row, tensors);
  });
  const std::string self = std::filesystem::read_symlink("/proc/self/exe");
  const int code = jit_testing::run_child([&] {
    const int out = open((dir / "out").c_str(), O_WRONLY | O_CREAT, 0600);
    dup2(out, STDOUT_FILENO);
    execl(self.c_str(), self.c_str(), "resume", dir.path().c_str(), nullptr);
    return 97;
  });
  CHECK(code == 0);
  const std::size_t count = kinds().size() * lr_testing::rows().size() * 2;
  CHECK(read_text(dir / "out") == std::to_string(count) + " runs, 0 wrong\n");
}

TEST_CASE("a run goes back to where it was saved, in place") {
  const TempDir dir;
  const std::string file = dir / "run";
  for (const Kind& kind : kinds()) {
    for (const bool tensors : {false, true}) {
      CAPTURE(kind.name);
      CAPTURE(tensors);
      const ScheduleRow& row = lr_testing::rows()[6];
      REQUIRE(row.name == "LinearLR");
      Run run(kind, row, tensors);
      auto step = compile([&] { run.opt->step(); });
      run.train(step, 1, kSaved);
      save_checkpoint(file, *run.opt, {&run.sched.scheduler()});
      const std::string saved = bits_of(run);
      run.train(step, kSaved + 1, kLast);
      const std::string wanted = bits_of(run);
      const Counters before = step.counters();
      const auto addresses = addresses_of(*run.opt);

      load_checkpoint(file, *run.opt, {&run.sched.scheduler()});
      CHECK(bits_of(run) == saved);
      CHECK(addresses_of(*run.opt) == addresses);
      run.train(step, kSaved + 1, kLast);
      CHECK(bits_of(run) == wanted);
      CHECK(step.counters().compilations == before.compilations);
      CHECK(step.counters().recompiles == before.recompiles);
      CHECK(step.counters().launches == kLast + kLast - kSaved);
    }
  }
}

TEST_CASE("other objects with a compiled step take over a run") {
  const TempDir dir;
  const std::string file = dir / "run";
  for (const ScheduleRow& row : lr_testing::rows()) {
    for (const Kind& kind : {kinds()[0], kinds()[4]}) {
      CAPTURE(row.name);
      CAPTURE(kind.name);
      train_and_save(file, kind, row, true);
      Run other(kind, row, true);
      auto step = compile([&] { other.opt->step(); });
      other.train(step, 1, 3);
      load_checkpoint(file, *other.opt, {&other.sched.scheduler()});
      other.train(step, kSaved + 1, kLast);
      CHECK(bits_of(other) == read_text(file + ".bits"));
      CHECK(step.counters().compilations == 1);
      CHECK(step.counters().recompiles == 0);
    }
  }
}

namespace {

// A run whose state is small: Adam with a schedule on one parameter.
struct Small {
  explicit Small(AdamOptions options = {}, Shape shape = {3},
                 DType dtype = DType::float32)
      : param(zeros(shape, dtype)),
        opt(std::vector<Tensor>{param}, std::move(options)),
        sched(opt, {.total_iters = 5}) {
    param.set_grad(full(shape, 0.5, dtype));
  }
  void step(int count = 1) {
    for (int i = 0; i < count; ++i) {
      opt.step();
      sched.step();
    }
  }
  void save(const std::string& path) { save_checkpoint(path, opt, {&sched}); }
  void load(const std::string& path) { load_checkpoint(path, opt, {&sched}); }
  std::string bits() { return bits_of(opt, sched.state()); }

  Tensor param;
  Adam opt;
  LinearLR sched;
};

// An optimizer without a schedule.
template <class Optim>
struct Bare {
  explicit Bare(std::vector<typename Optim::Group> groups)
      : opt(std::move(groups)) {}
  explicit Bare(const Shape& shape)
      : Bare(std::vector<typename Optim::Group>{
            {std::vector<Tensor>{zeros(shape)}}}) {}
  void save(const std::string& path) { save_checkpoint(path, opt); }
  void load(const std::string& path) { load_checkpoint(path, opt); }
  std::string bits() { return bits_of(opt, {}); }
  Optim opt;
};

}  // namespace

TEST_CASE("the policy decides about numbers that were loaded, too") {
  const TempDir dir;
  Small run;
  run.step(2);
  run.save(dir / "run");
  for (const Policy policy : {Policy::promote, Policy::specialize}) {
    Small other;
    other.load(dir / "run");
    auto step = compile([&] { other.step(); }, {.policy = policy});
    for (int i = 0; i < 2; ++i) step();
    CHECK(step.counters().recompiles == (policy == Policy::promote ? 0 : 1));
  }
}

TEST_CASE("a run saved before its first step takes the state away again") {
  const TempDir dir;
  Small run;
  run.save(dir / "run");
  const std::string start = run.bits();
  run.step(3);
  const std::string wanted = run.bits();
  CHECK(run.opt.state(run.param, "exp_avg").defined());
  run.load(dir / "run");
  CHECK_FALSE(run.opt.state(run.param, "exp_avg").defined());
  CHECK(run.bits() == start);
  run.step(3);
  CHECK(run.bits() == wanted);
}

TEST_CASE("numbers are kept to the last bit, also the odd ones") {
  const TempDir dir;
  const double infinity = std::numeric_limits<double>::infinity();
  for (const double value :
       {0.1 + 0.2, 0x1p-1074, -0.0, 1e300, 0x1.fffffffffffffp1023, infinity,
        -infinity, 1.0 / 3, 123456789012345678.0}) {
    CAPTURE(value);
    Small run;
    run.opt.param_groups[0]["eps"].assign(value);
    run.opt.group(0).initial_lr = value;
    run.save(dir / "run");
    Small other;
    other.load(dir / "run");
    CHECK(other.bits() == run.bits());
    CHECK(std::signbit(other.opt.param_groups[0]["eps"].value()) ==
          std::signbit(value));
  }
}

TEST_CASE("the rate that schedules start from goes with its group") {
  const TempDir dir;
  Bare<Adam> run(Shape{3});
  Bare<Adam> other(Shape{3});
  other.opt.group(0).initial_lr = 0.5;
  other.save(dir / "with");
  run.save(dir / "without");
  run.load(dir / "with");
  CHECK(run.opt.group(0).initial_lr == 0.5);
  run.load(dir / "without");
  CHECK_FALSE(run.opt.group(0).initial_lr.has_value());
}

TEST_CASE("tensors by name") {
  const TempDir dir;
  const Tensor weight = tensor({1, 2, 3});
  const Tensor odd = full({2, 0, 3}, 1, DType::float64);
  const Tensor number = tensor(1.0 / 3, DType::float64);
  save_tensors(dir / "model",
               {{"weight", weight}, {"", odd}, {"ü\n\"\\\x7f", number}});
  const Tensor weight2 = zeros({3});
  const Tensor number2 = zeros({}, DType::float64);
  const TensorMap others = {{"weight", weight2},
                            {"", zeros({2, 0, 3}, DType::float64)},
                            {"ü\n\"\\\x7f", number2}};
  load_tensors(dir / "model", others);
  CHECK(bitwise_equal(weight, weight2));
  CHECK(bitwise_equal(number, number2));

  const std::string start = "cannot load '" + dir / "model" + "': ";
  CHECK(message_of<Error>([&] { load_tensors(dir / "model", {}); }) ==
        start + "it contains \"\", which does not exist here");
  TensorMap wrong = others;
  wrong["more"] = zeros({1});
  CHECK(message_of<Error>([&] { load_tensors(dir / "model", wrong); }) ==
        start + "\"more\" is missing from the file");
  CHECK(contains(
      message_of<Error>([&] { save_tensors(dir / "bad", {{"\xff", number}}); }),
      "UTF-8"));
  CHECK_FALSE(std::filesystem::exists(dir / "bad"));
}

// ---- what is refused --------------------------------------------------------

namespace {

// Loads what `saved` saves into `other`, which must refuse it and stay.
template <class Saved, class Other>
void check_refused(Saved& saved, Other& other, const std::string& message) {
  const TempDir dir;
  saved.save(dir / "run");
  const std::string before = other.bits();
  CHECK(message_of<Error>([&] { other.load(dir / "run"); }) ==
        "cannot load '" + dir / "run" + "': " + message);
  CHECK(other.bits() == before);
}

}  // namespace

namespace {

// Two groups with names, at different states and steps.
struct Named {
  using Names = std::vector<std::string>;
  explicit Named(const Names& first, const Names& second)
      : opt({{pairs(first)}, {pairs(second)}}) {}

  static NamedParams pairs(const Names& names) {
    NamedParams all;
    for (const std::string& name : names) {
      all.emplace_back(name, zeros({3}));
      all.back().second.set_grad(zeros({3}));
    }
    return all;
  }
  // Other numbers for every parameter, step for step.
  void train() {
    for (int n = 1; n <= 2; ++n) {
      double value = n;
      for (Tensor param : opt.parameters()) {
        param.grad().fill_(value *= 1.5);
        if (n == 2 && value == 3) param.set_grad({});
      }
      opt.step();
    }
    for (Tensor param : opt.parameters()) param.set_grad({});
  }
  // All that belongs to the parameter of a name.
  std::vector<Tensor> all_of(const std::string& name) {
    for (const auto& group : opt.param_groups) {
      for (std::size_t i = 0; i < group.params.size(); ++i) {
        if (group.param_names[i] != name) continue;
        const Tensor& param = group.params[i];
        return {param.clone(), opt.state(param, "step").clone(),
                opt.state(param, "exp_avg").clone(),
                opt.state(param, "exp_avg_sq").clone()};
      }
    }
    return {};
  }

  Adam opt;
};

}  // namespace

TEST_CASE("parameters with names are loaded by them, in any order") {
  const TempDir dir;
  const std::string file = dir.path() + "/named";
  Named saved({"a", "b", "c, d"}, {"e\n", "f"});
  saved.train();
  save_checkpoint(file, saved.opt);
  Named other({"c, d", "a", "b"}, {"f", "e\n"});
  const std::vector<const void*> before = addresses_of(other.opt);
  load_checkpoint(file, other.opt);
  CHECK(addresses_of(other.opt).size() > before.size());
  for (const char* const name : {"a", "b", "c, d", "e\n", "f"}) {
    CAPTURE(name);
    CHECK(bitwise_equal(other.all_of(name), saved.all_of(name)));
  }
  CHECK_FALSE(bitwise_equal(other.all_of("a"), saved.all_of("b")));
  // Without names on either side, order decides.
  Named unnamed({"a", "b", "c"}, {"d", "e"});
  for (auto& group : unnamed.opt.param_groups) group.param_names.clear();
  load_checkpoint(file, unnamed.opt);
  CHECK(bitwise_equal(unnamed.opt.parameters(), saved.opt.parameters()));
  save_checkpoint(file, unnamed.opt);
  load_checkpoint(file, other.opt);
  CHECK(bitwise_equal(other.opt.parameters(), saved.opt.parameters()));
}

TEST_CASE("names that differ are reported together, renamed ones are told") {
  const TempDir dir;
  const std::string file = dir.path() + "/named";
  Named saved({"a", "b", "c"}, {"d", "e"});
  saved.train();
  save_checkpoint(file, saved.opt);
  Named other({"x", "c", "b"}, {"e", "y"});
  const std::string before = bits_of(other.opt, SchedulerState());
  CHECK(
      message_of<Error>([&] { load_checkpoint(file, other.opt); }) ==
      "cannot load '" + file +
          "': param_groups[0] has different names: \"x\" missing in the file, "
          "\"a\" unknown here; param_groups[1] has different names: \"y\" "
          "missing in the file, \"d\" unknown here; if they were renamed, "
          "load with .renames = {{\"a\", \"x\"}, {\"d\", \"y\"}}");
  CHECK(contains(message_of<Error>([&] {
                   load_checkpoint(file, other.opt, {},
                                   {.renames = {{"a", "x"}, {"z", "y"}}});
                 }),
                 "renames lists \"z\", but no parameter has that name in the "
                 "file"));
  CHECK(bits_of(other.opt, SchedulerState()) == before);
  load_checkpoint(file, other.opt, {}, {.renames = {{"a", "x"}, {"d", "y"}}});
  for (const auto& [old_name, name] : std::map<std::string, std::string>{
           {"a", "x"}, {"b", "b"}, {"c", "c"}, {"d", "y"}, {"e", "e"}}) {
    CAPTURE(name);
    CHECK(bitwise_equal(other.all_of(name), saved.all_of(old_name)));
  }
}

TEST_CASE("a run that differs is refused, says in what, and nothing changes") {
  Small run;
  run.step(2);
  Small amsgrad({.amsgrad = true});
  amsgrad.step();
  check_refused(run, amsgrad,
                "\"param_groups.0.amsgrad\" is false in the file, but true "
                "here");
  Small shape({}, {1, 3});
  shape.step();
  check_refused(run, shape,
                "\"param_groups.0.params.0\" has shape [3] and float32 in the "
                "file, but shape [1, 3] and float32 here");
  Small dtype({}, {3}, DType::float64);
  check_refused(run, dtype,
                "\"param_groups.0.params.0\" has shape [3] and float32 in the "
                "file, but shape [3] and float64 here");
  Small tensors({.lr = tensor(0.1)});
  tensors.step();
  check_refused(run, tensors,
                "\"param_groups.0.lr\" is a number in the file, but a tensor "
                "here");
  check_refused(tensors, run,
                "\"param_groups.0.lr\" is a tensor in the file, but a number "
                "here");
  Small wide({.lr = tensor(0.1, DType::float64)});
  check_refused(tensors, wide,
                "\"param_groups.0.lr\" has shape [] and float32 in the file, "
                "but shape [] and float64 here");
  Bare<AdamW> adamw(Shape{3});
  check_refused(run, adamw,
                "\"optimizer\" is Adam in the file, but AdamW here");
  Bare<Adam> bare(Shape{3});
  check_refused(run, bare, "\"schedulers\" is 1 in the file, but 0 here");
  check_refused(bare, run, "\"schedulers\" is 0 in the file, but 1 here");
  Bare<Adam> two({{{zeros({3})}}, {{zeros({3})}}});
  check_refused(bare, two, "\"param_groups\" is 1 in the file, but 2 here");
  Bare<Adam> more({{{zeros({3}), zeros({3})}}});
  check_refused(more, bare,
                "\"param_groups.0.params\" is 2 in the file, but 1 here");
}

TEST_CASE("states that the optimizer would not keep are refused") {
  Bare<SGD> with({{{zeros({3})}, SGDOptions{.momentum = 0.5}}});
  Bare<SGD> without({{{zeros({3})}}});
  for (auto* run : {&with, &without}) {
    Tensor param = run->opt.group(0).params[0];
    param.set_grad(full({3}, 1));
    run->opt.step();
  }
  // What comes first in the file would change something, too.
  without.opt.step();
  check_refused(with, without,
                "param_groups.0.state.0.momentum_buffer is not a state of "
                "this optimizer with its options");
}

TEST_CASE("another scheduler, and one of another optimizer, are refused") {
  const TempDir dir;
  Small run;
  run.save(dir / "run");
  Adam opt({zeros({3})}, {});
  ExponentialLR exponential(opt, {.gamma = 0.5});
  CHECK(message_of<Error>([&] {
          load_checkpoint(dir / "run", opt, {&exponential});
        }) == "cannot load '" + dir / "run" +
                  "': \"schedulers.0\" is LinearLR in the file, but "
                  "ExponentialLR here");
  CHECK(message_of<Error>([&] {
          load_checkpoint(dir / "run", opt, {&run.sched});
        }) == "checkpoint: LinearLR belongs to another optimizer");
  CHECK(message_of<Error>([&] {
          save_checkpoint(dir / "run", opt, {nullptr});
        }) == "checkpoint: a scheduler is null");
  CHECK(contains(message_of<Error>([&] { load_tensors(dir / "run", {}); }),
                 "\"format\" is fusebook checkpoint 1 in the file"));
}

TEST_CASE("inside a compiled function loading is refused, saving breaks") {
  const TempDir dir;
  Small run;
  run.save(dir / "run");
  auto loads = compile([&] {
    run.opt.step();
    run.load(dir / "run");
  });
  CHECK(contains(message_of<Error>(loads), "between two steps"));

  auto saves = compile([&] {
    run.opt.step();
    run.save(dir / "run");
  });
  saves();
  CHECK(saves.counters().graph_breaks == 1);
  Small other;
  other.load(dir / "run");
  CHECK(other.bits() == run.bits());
}

namespace {

// Loads changed files and notes which were not refused.
class Damaged {
 public:
  Damaged() {
    run_.step(2);
    run_.save(file_);
    content_ = read_text(file_);
    run_.step();
    before_ = run_.bits();
  }
  const std::string& content() const { return content_; }

  /// What the error says; "no error" when it was loaded.
  std::string load(const std::string& content) {
    ++tried_;
    write_text(file_, content);
    const std::string message = message_of<Error>([&] { run_.load(file_); });
    if (run_.bits() != before_) return "changed: " + message;
    return message;
  }
  int tried() const { return tried_; }

 private:
  TempDir dir_;
  std::string file_ = dir_ / "run";
  Small run_;
  std::string content_;
  std::string before_;
  int tried_ = 0;
};

bool refused(const std::string& message) {
  return message.starts_with("cannot read '") && contains(message, "amaged");
}

bool cut_short(const std::string& message) {
  return message.starts_with("cannot read '") && contains(message, "truncated");
}

}  // namespace

TEST_CASE("a truncated file is refused, wherever it ends") {
  Damaged run;
  for (std::size_t size = 0; size < run.content().size(); ++size) {
    CAPTURE(size);
    const std::string message = run.load(run.content().substr(0, size));
    REQUIRE(cut_short(message));
  }
  CHECK(run.tried() > 200);
  CHECK(cut_short(run.load(run.content() + "x")));
}

TEST_CASE("a file with one bit changed is refused, whichever it is") {
  Damaged run;
  for (std::size_t i = 0; i < run.content().size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      CAPTURE(i);
      CAPTURE(bit);
      std::string content = run.content();
      content[i] = char(content[i] ^ (1 << bit));
      const std::string message = run.load(content);
      REQUIRE((refused(message) || cut_short(message)));
    }
  }
  CHECK(run.tried() > 200);
}

TEST_CASE("blocks that are zeroed, doubled or exchanged are refused") {
  Damaged run;
  testing::Random random(3);
  const int size = int(run.content().size());
  for (int i = 0; i < 300; ++i) {
    std::string content = run.content();
    const auto from = std::size_t(random.below(size - 16));
    const auto to = std::size_t(random.below(size - 16));
    const std::string block =
        i % 2 == 0 ? content.substr(from, 16) : std::string(16, '\0');
    if (i % 3 == 0) content.insert(to, block);
    if (i % 3 != 0) content.replace(to, 16, block);
    if (content == run.content()) continue;
    const std::string message = run.load(content);
    CAPTURE(i);
    REQUIRE((refused(message) || cut_short(message)));
  }
}

TEST_CASE("files that are none of ours are refused") {
  const TempDir dir;
  Small run;
  const auto message = [&](const std::string& path) {
    return message_of<Error>([&] { run.load(path); });
  };
  CHECK(message(dir / "none") ==
        "cannot read '" + dir / "none" + "': No such file or directory");
  CHECK(message(dir.path()) ==
        "cannot read '" + dir.path() + "': it is not a regular file");
  REQUIRE(mkfifo((dir / "pipe").c_str(), 0600) == 0);
  CHECK(contains(message(dir / "pipe"), "not a regular file"));
  write_text(dir / "text", "This is no checkpoint, but a longer text.\n");
  CHECK(contains(message(dir / "text"), "not a safetensors file"));
  std::string foreign =
      R"({"a":{"dtype":"F32","shape":[],"data_offsets":[0,4]}})";
  foreign += std::string(64 - foreign.size(), ' ');
  write_text(dir / "foreign",
             std::string("\x40\0\0\0\0\0\0\0", 8) + foreign + "1234");
  CHECK(message(dir / "foreign") ==
        "cannot read '" + dir / "foreign" +
            "': damaged, or a safetensors file that Fusebook did not write: it "
            "has no "
            "checksum");
}
