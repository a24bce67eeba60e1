// Whether training suffers from how weights and states are stored: one model of
// the letters of the book's glossary, with five optimizers, every storage and
// several seeds. With --check 1 it fails where a storage does not end among the
// seeds of float32.

#include <cstdio>
#include <exception>

#include "convergence/comparison.h"
#include "fusebook/harness/options.h"
#include "fusebook/runtime/parallel.h"
#include "fusebook/support/error.h"
#include "fusebook/support/output_file.h"

namespace fuse::convergence {
namespace {

int run(int argc, const char* const* argv) {
  const OptionSet own(
      {{"steps", 2000, 1, 1000000, "steps of each training"},
       {"seeds", 5, 1, 99, "trainings of each optimizer with each storage"},
       {"check", 0, 0, 1, "1: fail if one ends outside the seeds of float32"}});
  const Options options = parse_options(argc, argv, own);
  if (options.help_wanted()) {
    std::printf("%s", usage_text("convergence", own).c_str());
    return 0;
  }
  if (options.threads() > 0) set_thread_count(options.threads());
  const Text text(FUSEBOOK_ROOT "/" FUSEBOOK_TEXT);
  const Wanted wanted = {int(options["seeds"]), int(options["steps"])};
  const std::vector<Losses> all = train_all(text, wanted);
  if (!options.json_file().empty()) {
    OutputFile file("--json", options.json_file());
    file.write(json_of(all, text, wanted, FUSEBOOK_TEXT));
    file.commit();
  }
  return options["check"] == 0 || all_hold(all) ? 0 : 1;
}

}  // namespace
}  // namespace fuse::convergence

int main(int argc, char** argv) {
  try {
    return fuse::convergence::run(argc, argv);
  } catch (const fuse::UsageError& error) {
    std::fprintf(stderr, "convergence: error: %s\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "convergence: error: %s\n", error.what());
    return 1;
  }
}
