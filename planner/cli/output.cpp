#include "planner/cli/output.hpp"

#include <unistd.h>

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <system_error>

#include "bench/profile/fingerprint.hpp"
#include "configs/spec/support/atomic_file.hpp"
#include "configs/spec/support/error.hpp"
#include "reports/render/render.hpp"
#include "reports/render/text.hpp"

namespace wt {
namespace {

/// The words of this process, as they were typed, quoted where they hold blanks.
std::string command_line() {
  std::ifstream in("/proc/self/cmdline", std::ios::binary);
  const std::string words{std::istreambuf_iterator<char>(in), {}};
  std::string line;
  for (std::size_t at = 0; at < words.size(); at = words.find('\0', at) + 1) {
    std::string word = words.c_str() + at;
    if (line.empty()) word = std::filesystem::path(word).filename().string();
    if (word.find_first_of(" \t'\"") != std::string::npos) word = fmt::format("'{}'", word);
    line += (line.empty() ? "" : " ") + word;
    if (words.find('\0', at) == std::string::npos) break;
  }
  return line;
}

}  // namespace

void put_report(const Report& report, bool json) {
  if (json)
    fmt::print("{}", json_text(report_json(report)));
  else
    fmt::print("{}", text_report(report, {.color = use_color(Color::automatic, STDOUT_FILENO)}));
}

void write_report_file(const Report& report, const std::string& file) {
  if (file == "-") return put_report(report, false);
  const std::string ending = std::filesystem::path(file).extension().string();
  if (ending == ".html") return write_file_atomically(file, html_report(report));
  if (ending == ".md") return write_file_atomically(file, markdown_report(report));
  if (ending == ".json") return write_file_atomically(file, json_text(report_json(report)));
  if (ending == ".txt") return write_file_atomically(file, text_report(report));
  throw_error(Code::usage,
              "-o {}: found the ending '{}', allowed .html, .md, .json and .txt; name the file so, or '-' for text",
              file, ending);
}

KeyValues provenance(std::vector<std::pair<std::string, Cell>> entries) {
  KeyValues out;
  out.title = "Where this comes from";
  const Fingerprint facts = host_facts();
  const auto fact = [&](const std::string& key) {
    const auto it = facts.find(key);
    return it == facts.end() ? std::string("not known") : it->second;
  };
  out.entries = {
      {"command", command_line()}, {"version", WT_VERSION}, {"commit", fact("commit")}, {"date", fact("date")}};
  for (auto& entry : entries) out.entries.push_back(std::move(entry));
  return out;
}

std::filesystem::path make_folder(const std::string& folder) {
  std::error_code failure;
  std::filesystem::create_directories(folder, failure);
  if (failure || !std::filesystem::is_directory(folder))
    throw_error(Code::runtime, "-o {}: cannot be created: {}; needs a folder that can be written, choose another",
                folder, failure ? failure.message() : "a file is in the way");
  return folder;
}

}  // namespace wt
