#include "fusebook/support/file_io.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <system_error>

namespace fuse {
namespace {

// Writing beyond RLIMIT_FSIZE raises SIGXFSZ, which by default ends the
// process. For the calling thread this turns it into an ordinary EFBIG.
class FileSizeSignalBlock {
 public:
  FileSizeSignalBlock() {
    sigemptyset(&signals_);
    sigaddset(&signals_, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &signals_, &old_);
  }
  ~FileSizeSignalBlock() {
    const int saved = errno;
    if (sigismember(&old_, SIGXFSZ) == 0) {
      const timespec now = {};
      while (sigtimedwait(&signals_, nullptr, &now) == -1 && errno == EINTR) {
      }
      pthread_sigmask(SIG_SETMASK, &old_, nullptr);
    }
    errno = saved;
  }
  FileSizeSignalBlock(const FileSizeSignalBlock&) = delete;
  FileSizeSignalBlock& operator=(const FileSizeSignalBlock&) = delete;

 private:
  sigset_t signals_;
  sigset_t old_;
};

// Until all is written, by calls that write some of it.
template <class Write>
bool write_by(Write write_some, std::string_view bytes) {
  const FileSizeSignalBlock block;
  while (!bytes.empty()) {
    const ssize_t count = write_some(bytes);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return false;
    bytes.remove_prefix(std::size_t(count));
  }
  return true;
}

}  // namespace

UniqueFd::~UniqueFd() {
  if (fd_ < 0) return;
  const int saved = errno;
  close(fd_);
  errno = saved;
}

bool write_all(int fd, std::string_view bytes) {
  return write_by(
      [fd](std::string_view rest) {
        return write(fd, rest.data(), rest.size());
      },
      bytes);
}

bool write_all_at(int fd, std::uint64_t begin, std::string_view bytes) {
  const char* const first = bytes.data();
  return write_by(
      [=](std::string_view rest) {
        const auto done = std::uint64_t(rest.data() - first);
        return pwrite(fd, rest.data(), rest.size(), off_t(begin + done));
      },
      bytes);
}

bool read_exactly(int fd, std::size_t size, std::string* bytes) {
  bytes->resize(size);
  std::size_t done = 0;
  while (done < size) {
    const ssize_t count =
        pread(fd, bytes->data() + done, size - done, off_t(done));
    if (count < 0 && errno == EINTR) continue;
    if (count == 0) errno = 0;
    if (count <= 0) return false;
    done += std::size_t(count);
  }
  return true;
}

bool write_new_file(const std::string& path, std::string_view bytes) {
  const UniqueFd file(open(path.c_str(),
                           O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                           0600));
  return file.valid() && write_all(file.get(), bytes);
}

std::string errno_text() { return std::generic_category().message(errno); }

}  // namespace fuse
