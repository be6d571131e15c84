#include "configs/base/atomic_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "configs/base/descriptor.hpp"
#include "configs/base/file_write.hpp"
#include "configs/base/temporary_file.hpp"

namespace wt {
namespace {

namespace fs = std::filesystem;

void write_through(const fs::path& file, std::string_view bytes) {
  Descriptor out(open(file.c_str(), O_WRONLY | O_CLOEXEC));
  if (!out.is_open()) fail_write(file, "open", errno);
  if (const int error = write_all(out.get(), bytes)) fail_write(file, "write", error);
  if (close(out.release()) != 0) fail_write(file, "close", errno);
}

}  // namespace

void write_file_atomically(const fs::path& file, std::string_view bytes) {
  const HoldFileSizeSignal hold;
  std::error_code ignored;
  const fs::path target = fs::is_symlink(file, ignored) ? fs::weakly_canonical(file, ignored) : file;
  struct stat old {};
  const bool exists = stat(target.c_str(), &old) == 0;
  if (exists && S_ISDIR(old.st_mode)) fail_write(file, "open", EISDIR);
  if (exists && !S_ISREG(old.st_mode)) return write_through(target, bytes);

  TemporaryFile temporary(target, 0666);
  if (exists && fchmod(temporary.fd(), old.st_mode & 07777) != 0) fail_write(file, "fchmod", errno);
  if (const int error = write_all(temporary.fd(), bytes)) fail_write(file, "write", error);
  temporary.rename_to_target();
}

}  // namespace wt
