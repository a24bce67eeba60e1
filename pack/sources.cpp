#include "sources.h"

#include <fmt/core.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

#include "fusebook/jit/process.h"
#include "fusebook/support/error.h"
#include "fusebook/support/file_io.h"

namespace {

namespace fs = std::filesystem;
using fuse::Error;

// Where operations outside of compiled functions are kept.
constexpr const char* at_once = "at_once";

// A folder of its own, removed at the end: the program may run for hours.
class KeptSources {
 public:
  KeptSources() {
    std::string name = fs::temp_directory_path() / "fusebook-pack-XXXXXX";
    if (mkdtemp(name.data()) == nullptr ||
        !fs::create_directory(fs::path(name) / at_once)) {
      throw Error("cannot create a folder in '" +
                  fs::temp_directory_path().string() +
                  "': " + fuse::errno_text() + "; set TMPDIR to another");
    }
    path_ = name;
  }
  ~KeptSources() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  KeptSources(const KeptSources&) = delete;
  KeptSources& operator=(const KeptSources&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

[[noreturn]] void become(const std::vector<std::string>& command,
                         const std::string& folder) {
  std::vector<char*> words;
  for (const std::string& word : command) {
    words.push_back(const_cast<char*>(word.c_str()));
  }
  words.push_back(nullptr);
  signal(SIGINT, SIG_DFL);
  setenv("FUSEBOOK_KEEP_SOURCE", folder.c_str(), 1);
  execvp(words[0], words.data());
  std::fprintf(stderr, "fusebook-pack: cannot start '%s': %s\n", words[0],
               fuse::errno_text().c_str());
  _exit(127);
}

// The program sees Ctrl-C, and this one cleans up after it.
void run(const std::vector<std::string>& command, const std::string& folder) {
  signal(SIGINT, SIG_IGN);
  const pid_t child = fork();
  if (child == 0) become(command, folder);
  int status = 0;
  while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  signal(SIGINT, SIG_DFL);
  if (child < 0) throw Error("cannot start a process: " + fuse::errno_text());
  if (status == 0) return;
  throw Error(fmt::format(
      "'{}' {}; nothing was packed", command[0],
      WIFSIGNALED(status)
          ? "was ended by " + fuse::signal_text(WTERMSIG(status))
          : fmt::format("ended with exit code {}", WEXITSTATUS(status))));
}

std::string text_in(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text(std::istreambuf_iterator<char>(file), {});
  if (!file.bad() && file.is_open()) return text;
  throw Error("cannot read '" + path.string() + "'");
}

// In the order of their names, so that a pack does not depend on the disk's.
void add_sources(const fs::path& folder, Sources* sources) {
  std::vector<fs::path> paths;
  std::error_code error;
  for (fs::directory_iterator each(folder, error), end; !error && each != end;
       each.increment(error)) {
    paths.push_back(each->path());
  }
  if (error) {
    throw Error("cannot read the folder '" + folder.string() +
                "': " + error.message());
  }
  std::sort(paths.begin(), paths.end());
  for (const fs::path& path : paths) {
    const bool gpu = path.extension() == ".cu";
    if (!gpu && path.extension() != ".cpp") continue;
    auto& texts = gpu ? sources->gpu : sources->cpu;
    std::string text = text_in(path);
    if (std::find(texts.begin(), texts.end(), text) == texts.end()) {
      texts.push_back(std::move(text));
    }
  }
}

}  // namespace

Sources sources_of_program(const std::vector<std::string>& command) {
  const KeptSources kept;
  run(command, kept.path());
  return sources_in(kept.path());
}

Sources sources_in(const std::string& folder) {
  Sources sources;
  add_sources(folder, &sources);
  const fs::path apart = fs::path(folder) / at_once;
  if (fs::is_directory(apart)) add_sources(apart, &sources);
  return sources;
}
