#include "keep_source.h"

#include <cstdlib>
#include <string>

#include "codegen.h"
#include "content_hash.h"
#include "output_file.h"

namespace fuse {
namespace {

constexpr const char* variable = "FUSEBOOK_KEEP_SOURCE";

void keep(const std::string& folder, const std::string& text,
          const std::string& ending) {
  const std::string name = hex_digits(content_hash(text)) + ending;
  OutputFile file(variable, folder + "/" + name);
  file.write(text);
  file.commit();
}

}  // namespace

void keep_source(const Plan& plan) {
  const char* const folder = std::getenv(variable);
  if (folder == nullptr || *folder == '\0') return;
  keep(folder, generate_cpu_source(plan), ".cpp");
  keep(folder, generate_gpu_source(plan), ".cu");
}

}  // namespace fuse
