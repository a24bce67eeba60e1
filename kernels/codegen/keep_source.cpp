#include "fusebook/codegen/keep_source.h"

#include <unistd.h>

#include <cstdlib>
#include <string>

#include "fusebook/codegen/emit_kernel.h"
#include "fusebook/support/content_hash.h"
#include "fusebook/support/output_file.h"

namespace fuse {
namespace {

constexpr const char* variable = "FUSEBOOK_KEEP_SOURCE";

// The folder; empty for none.
std::string wanted_folder() {
  const char* const folder = std::getenv(variable);
  return folder == nullptr ? "" : folder;
}

void keep(const std::string& folder, const std::string& text,
          const std::string& ending) {
  const std::string name = hex_digits(content_hash(text)) + ending;
  OutputFile file(variable, folder + "/" + name);
  file.write(text);
  file.commit();
}

}  // namespace

void keep_source(const Plan& plan) {
  const std::string folder = wanted_folder();
  if (folder.empty()) return;
  keep(folder, generate_cpu_source(plan), ".cpp");
  keep(folder, generate_gpu_source(plan), ".cu");
}

void keep_cuda_source(const std::string& text) {
  const std::string folder = wanted_folder();
  if (!folder.empty()) keep(folder, text, ".cu");
}

void keep_quick_source(const Plan& plan) {
  const std::string folder = wanted_folder();
  if (folder.empty()) return;
  const std::string apart = folder + "/at_once";
  if (access(apart.c_str(), F_OK) == 0) {
    keep(apart, generate_gpu_source(plan), ".cu");
  }
}

}  // namespace fuse
