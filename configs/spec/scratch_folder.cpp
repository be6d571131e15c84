#include "configs/spec/scratch_folder.hpp"

#include <stdlib.h>  // NOLINT(modernize-deprecated-headers): mkdtemp is POSIX

#include <cerrno>
#include <cstring>

#include "configs/spec/error.hpp"

namespace wt {

ScratchFolder::ScratchFolder(const std::string& name, const std::filesystem::path& parent) {
  std::error_code ignored;
  std::filesystem::create_directories(parent, ignored);
  std::string path = (parent / (name + "-XXXXXX")).string();
  if (::mkdtemp(path.data()) == nullptr)
    throw_error(Code::runtime, "{}: cannot be made ({}); needs a folder that you may write, for temporary files TMPDIR names one", path,
                std::strerror(errno));
  path_ = path;
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace wt
