#include "reports/render/write.hpp"

#include <system_error>
#include <utility>

#include "configs/base/atomic_file.hpp"
#include "configs/base/error.hpp"
#include "reports/render/render.hpp"

namespace wt {

std::vector<std::filesystem::path> write_report(const Report& report, const std::filesystem::path& folder,
                                                const std::string& basename) {
  if (basename.empty() || std::filesystem::path(basename).filename() != basename || basename == "." || basename == "..")
    throw_usage("report: found the name '{}', allowed a file name without a folder; give the folder apart", basename);
  const std::pair<const char*, std::string> formats[] = {
      {".html", html_report(report)}, {".json", json_text(report_json(report))}, {".md", markdown_report(report)}};
  std::error_code failure;
  std::filesystem::create_directories(folder, failure);
  if (failure)
    throw_runtime("{}: cannot be created: {}; needs a folder that can be written, choose another", folder.string(),
                  failure.message());
  std::vector<std::filesystem::path> files;
  for (const auto& [extension, bytes] : formats) {
    files.push_back(folder / (basename + extension));
    write_file_atomically(files.back(), bytes);
  }
  return files;
}

}  // namespace wt
