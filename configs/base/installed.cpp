#include "configs/base/installed.hpp"

#include <fstream>

#include "configs/base/error.hpp"
#include "configs/base/process.hpp"

namespace wt {
namespace {

std::filesystem::path data_folder() { return program_folder().parent_path() / "share" / "windtunnel"; }

}  // namespace

const std::filesystem::path& program_folder() {
  static const std::filesystem::path folder = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  return folder;
}

std::filesystem::path data_path(const std::string& name) {
  std::error_code failure;
  std::filesystem::path found = std::filesystem::canonical(data_folder() / name, failure);
  if (failure)
    throw_usage("{}: {}; needs the data that belongs to the program: install both, or run it from its build folder",
                (data_folder() / name).string(), failure.message());
  return found;
}

std::string source_commit() {
  if (std::ifstream kept(data_folder() / "commit"); kept) {
    std::string commit;
    kept >> commit;
    return commit;
  }
  return output_of({.words = {"git", "-C", (data_folder() / "configs").string(), "describe", "--always", "--dirty",
                              "--abbrev=12", "--exclude=*"}});
}

}  // namespace wt
