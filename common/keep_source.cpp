#include "keep_source.h"

#include <cstdlib>
#include <string>

#include "codegen.h"
#include "content_hash.h"
#include "output_file.h"

namespace fuse {
namespace {

constexpr const char* variable = "FUSEBOOK_KEEP_SOURCE";

void keep(const std::string& text, const std::string& ending) {
  const std::string folder = std::getenv(variable);
  const std::string name = hex_digits(content_hash(text)) + ending;
  OutputFile file(variable, folder + "/" + name);
  file.write(text);
  file.commit();
}

bool is_wanted() {
  const char* const folder = std::getenv(variable);
  return folder != nullptr && *folder != '\0';
}

}  // namespace

void keep_source(const Plan& plan) {
  if (!is_wanted()) return;
  keep(generate_cpu_source(plan), ".cpp");
  keep(generate_gpu_source(plan), ".cu");
}

void keep_cuda_source(const std::string& text) {
  if (is_wanted()) keep(text, ".cu");
}

}  // namespace fuse
