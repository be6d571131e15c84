#include "planner/cli/parts/provenance.hpp"

#include <fmt/core.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "configs/base/installed.hpp"
#include "configs/base/lookup.hpp"
#include "configs/machine/fingerprint.hpp"

namespace wt {
namespace {

/// The command line of this process, with words that contain blanks quoted.
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

std::string fact(const Fingerprint& facts, const std::string& key) { return value_or(facts, key, "not known"); }

std::string build(const Fingerprint& facts) {
  return fmt::format("{}, {}, {} trainer, {} CUDA", WT_BUILD_TYPE, fact(facts, "compiler"),
                     std::filesystem::exists(program_folder() / "windtunnel-train") ? "with" : "without",
                     WT_WITH_CUDA ? "with" : "without");
}

}  // namespace

KeyValues provenance(std::vector<std::pair<std::string, Cell>> entries) {
  const Fingerprint facts = host_facts();
  entries.insert(entries.begin(), {{"command", command_line()},
                                   {"version", WT_VERSION},
                                   {"commit", fact(facts, "commit")},
                                   {"build", build(facts)},
                                   {"date", fact(facts, "date")}});
  return {.title = "Where this comes from", .entries = std::move(entries)};
}

std::string version_text() {
  const Fingerprint facts = host_facts();
  return fmt::format("windtunnel {}\ncommit {}\nbuild {}", WT_VERSION, fact(facts, "commit"), build(facts));
}

}  // namespace wt
