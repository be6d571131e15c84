#include "configs/base/output_place.hpp"

#include <fmt/core.h>
#include <unistd.h>

namespace wt {

namespace fs = std::filesystem;

std::string refused_output(const fs::path& output, Output kind) {
  if (output == "-") return "";
  std::error_code failed;
  const std::string needs =
      fmt::format("needs a {} that can be written, choose another", kind == Output::folder ? "folder"
                                                                    : kind == Output::file ? "file"
                                                                                           : "place");
  const auto refused = [&](const fs::path& where, const char* why) {
    return fmt::format("{}: {} {}; {}", output.string(), where.string(), why, needs);
  };
  if (output.empty()) return "found an empty name; " + needs;
  const fs::file_status there = fs::status(output, failed);
  if (fs::is_directory(there) && kind == Output::file) return refused(output, "is a folder");
  if (fs::exists(there) && !fs::is_directory(there)) {
    if (kind == Output::folder) return refused(output, "is a file");
    // A file is replaced by a new one in its folder.
    if (!fs::is_regular_file(there)) return access(output.c_str(), W_OK) == 0 ? "" : refused(output, "is read-only");
  }
  fs::path folder = fs::is_directory(there) ? output : fs::absolute(output, failed).parent_path();
  while (!fs::exists(folder, failed) && folder.has_relative_path()) {
    if (failed && failed != std::errc::not_a_directory) return refused(folder, failed.message().c_str());
    folder = folder.parent_path();
  }
  if (!fs::is_directory(folder, failed)) return refused(folder, "is a file");
  return access(folder.c_str(), W_OK | X_OK) == 0 ? "" : refused(folder, "cannot be written");
}

std::function<std::string(const std::string&)> writable(Output kind) {
  return [kind](const std::string& place) { return refused_output(place, kind); };
}

}  // namespace wt
