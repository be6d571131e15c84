#include "planner/cli/parts/output.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <system_error>

#include "configs/base/error.hpp"
#include "planner/cli/parts/commands.hpp"
#include "reports/render/render.hpp"
#include "reports/render/text_report.hpp"

namespace wt {

void put_report(const Report& report, bool json) {
  if (json)
    fmt::print("{}", json_text(report_json(report)));
  else
    fmt::print("{}", text_report(report, terminal_options(STDOUT_FILENO)));
}

std::string shown_table(const Table& table) { return text_table(table, terminal_options(STDOUT_FILENO)); }

void check_report_file(const std::string& file) {
  const std::string ending = std::filesystem::path(file).extension().string();
  if (file != "-" && ending != ".html" && ending != ".md" && ending != ".json" && ending != ".txt")
    throw_usage("-o {}: found the ending '{}', allowed .html, .md, .json and .txt; name the file so, or '-' for text",
                file, ending);
}

void write_report_file(const Report& report, const std::string& file) {
  check_report_file(file);
  if (file == "-") return put_report(report, false);
  const std::string ending = std::filesystem::path(file).extension().string();
  put_document(ending == ".html"   ? html_report(report)
               : ending == ".md"   ? markdown_report(report)
               : ending == ".json" ? json_text(report_json(report))
                                   : text_report(report),
               file);
}

std::filesystem::path make_folder(const std::string& folder) {
  std::error_code failure;
  std::filesystem::create_directories(folder, failure);
  if (failure || !std::filesystem::is_directory(folder))
    throw_runtime("-o {}: cannot be created: {}; needs a folder that can be written, choose another", folder,
                  failure ? failure.message() : "a file is in the way");
  if (access(folder.c_str(), W_OK | X_OK) != 0)
    throw_runtime("-o {}: {}; needs a folder that can be written, choose another", folder, std::strerror(errno));
  return folder;
}

}  // namespace wt
