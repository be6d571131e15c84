#include "configs/base/scratch_folder.hpp"

#include <stdlib.h>  // NOLINT(modernize-deprecated-headers): mkdtemp is POSIX

#include <cerrno>
#include <cstring>

#include "configs/base/error.hpp"

namespace fs = std::filesystem;

namespace wt {

ScratchFolder::ScratchFolder(const std::string& name, fs::path parent) {
  std::error_code failed;
  if (parent.empty()) parent = fs::temp_directory_path(failed);
  if (failed) throw_runtime("TMPDIR: found no folder there ({}), needs one for temporary files", failed.message());
  fs::create_directories(parent, failed);
  std::string path = (parent / (name + "-XXXXXX")).string();
  if (::mkdtemp(path.data()) == nullptr)
    throw_runtime("{}: cannot be made ({}); needs a place that you may write", path, std::strerror(errno));
  path_ = path;
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace wt
