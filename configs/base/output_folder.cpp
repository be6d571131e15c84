#include "configs/base/output_folder.hpp"

#include <fstream>
#include <iterator>

#include "configs/base/atomic_file.hpp"
#include "configs/base/error.hpp"

namespace wt {

namespace fs = std::filesystem;

void take_output_folder(const fs::path& folder, const std::string& command) {
  const fs::path marker = folder / ".windtunnel";
  const std::string own = "windtunnel " + command + "\n";
  std::string first;  // alphabetically
  std::error_code failed;
  fs::create_directories(folder, failed);
  for (fs::directory_iterator entry = failed ? fs::directory_iterator() : fs::directory_iterator(folder, failed), end;
       !failed && entry != end; entry.increment(failed))
    if (const std::string name = entry->path().filename().string(); first.empty() || name < first) first = name;
  if (failed)
    throw_runtime("{}: cannot be made or listed ({}); needs a folder that can be written, choose another",
                  folder.string(), failed.message());
  if (first.empty()) return write_file_atomically(marker, own);
  std::ifstream in(marker);
  const std::string found((std::istreambuf_iterator<char>(in)), {});
  if (found == own) return;
  throw_usage(
      "{}: found {}, not written by windtunnel {}, which replaces what its folder holds; needs a folder that is new, "
      "empty or its own earlier output (then {} says so); choose another with -o, or move what is there; nothing was "
      "changed",
      folder.string(),
      found.starts_with("windtunnel ") ? "output of " + found.substr(0, found.find('\n')) : "'" + first + "'", command,
      marker.filename().string());
}

}  // namespace wt
