#include "planner/recipes/job_command.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "configs/base/error.hpp"

namespace wt {
namespace {

/// The words of a text's begin, without quotes.
std::vector<std::string> words_of(const std::string& text) {
  constexpr std::size_t kMost = 1 << 16;
  std::vector<std::string> out;
  std::string word;
  for (const char c : text.substr(0, kMost) + "\n") {
    if (c == '"' || c == '\'' || c == '\\') continue;
    if (c != ' ' && c != '\t' && c != '\n' && c != '\r' && c != ';') {
      word += c;
      continue;
    }
    if (!word.empty()) out.push_back(word);
    word.clear();
  }
  return out;
}

bool is_yaml(const std::string& word) { return word.ends_with(".yaml") || word.ends_with(".yml"); }

/// The value of one of these flags: "-c VALUE", "--config=VALUE"; "" = none.
std::string value_of(const std::vector<std::string>& words, const std::vector<std::string>& flags) {
  for (std::size_t i = 0; i < words.size(); ++i)
    for (const std::string& flag : flags) {
      if (words[i] == flag && i + 1 < words.size()) return words[i + 1];
      if (words[i].starts_with(flag + "=")) return words[i].substr(flag.size() + 1);
    }
  return "";
}

/// What follows `automodel`, if that is a file.
std::string automodel_file(const std::vector<std::string>& words) {
  for (std::size_t i = 0; i + 1 < words.size(); ++i)
    if (words[i].substr(words[i].rfind('/') + 1) == "automodel" && is_yaml(words[i + 1])) return words[i + 1];
  return "";
}

/// A variable of run_train.sh, set before it; "${CONFIG_FILE:-x}" is x.
std::string variable(const std::vector<std::string>& words, const std::string& name, const RecipeSource& source) {
  if (const auto given = source.variables.find(name); given != source.variables.end()) return given->second;
  std::string value = value_of(words, {name}), fallback = "${" + name + ":-";
  if (!value.starts_with(fallback) || !value.ends_with('}')) return value;
  return value.substr(fallback.size(), value.size() - fallback.size() - 1);
}

std::int64_t count_of(const std::string& word) {
  const Settings::Value number = scalar_of_word(word);
  constexpr std::int64_t kMost = 1 << 24;
  return number.is_number_integer() && number > 0 && number < kMost ? number.get<std::int64_t>() : 0;
}

std::string taken(Settings& flags, const std::string& key) {
  std::string value = flags.text(key, "");
  flags.remove(key);
  return value;
}

bool is_list(const std::string& key) {
  for (const char* one : {"model.converters", "compile.components", "filter_fqns", ".fqns", "exclude_from_loading"})
    if (key.ends_with(one)) return true;
  return false;
}

Settings::Value list_of(const std::string& words) {
  Settings::Value out = Settings::Value::array();
  for (std::size_t at = 0; at <= words.size();) {
    const std::size_t end = std::min(words.find(',', at), words.size());
    if (end > at) out.push_back(words.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

}  // namespace

bool is_titan_command(const std::string& text) {
  for (const char* mark :
       {"run_train.sh", "torchtitan.train", "torchtitan/train.py", "--job.config_file", "--job.config-file"})
    if (text.find(mark) != std::string::npos) return true;
  return false;
}

bool is_automodel_command(const std::string& text) {
  if (text.find("automodel") == std::string::npos) return false;
  const std::vector<std::string> words = words_of(text);
  return is_yaml(value_of(words, {"-c", "--config"})) || !automodel_file(words).empty();
}

JobCommand job_command(const std::string& text, const std::string& origin, const RecipeSource& source) {
  JobCommand out{.flags = settings_from_shell(text, origin, source), .file = "", .module = "", .config = ""};
  const std::vector<std::string> words = words_of(text);
  for (const char* key : {"job.config-file", "job.config_file"})
    if (out.flags.has(key)) out.file = taken(out.flags, key);
  const std::string config = taken(out.flags, "config");
  const bool names_file = is_yaml(config) || config.ends_with(".toml");
  (names_file ? out.file : out.config) = out.file.empty() || !names_file ? config : out.file;
  out.module = taken(out.flags, "module");
  if (out.file.empty()) out.file = value_of(words, {"-c"});
  if (out.file.empty()) out.file = automodel_file(words);
  if (out.file.empty() && out.config.empty()) {
    out.file = variable(words, "CONFIG_FILE", source);
    out.module = variable(words, "MODULE", source), out.config = variable(words, "CONFIG", source);
  }
  for (const std::string* name : {&out.file, &out.module, &out.config})
    if (name->find('$') != std::string::npos)
      throw_usage("{}: found {}, which the script does not set, needs the job's name; give --env NAME=VALUE", origin,
                  *name);
  out.gpus = out.flags.integer("launch.gpus", count_of(variable(words, "NGPU", source)));
  if (out.gpus == 0) out.gpus = count_of(value_of(words, {"--nproc-per-node", "--nproc_per_node"}));
  return out;
}

std::string text_of_job(const JobCommand& command, const std::string& origin, const RecipeSource& source) {
  if (source.file) {
    std::filesystem::path folder = std::filesystem::path(origin).parent_path();
    for (int up = 0; up < 8; ++up, folder /= "..")
      if (const auto text = source.file((folder / command.file).lexically_normal())) return *text;
  }
  throw_usage("{}: found the job's file {}, which is not here; put it beside the script, or give it itself", origin,
              command.file);
}

void put_overrides(const JobCommand& command, Settings& job) {
  for (const Settings::Entry& entry : command.flags.entries()) {
    std::string key = entry.key;
    if (key.find('.') == std::string::npos || key.starts_with("launch.")) continue;
    std::ranges::replace(key, '-', '_');
    const std::size_t last = key.rfind('.') + 1;
    const bool negated = key.substr(last).starts_with("no_") && entry.value == true;
    if (negated) key.erase(last, 3);
    job.put(key, negated                                   ? Settings::Value(false)
                 : is_list(key) && entry.value.is_string() ? list_of(entry.value.get<std::string>())
                                                           : entry.value);
  }
  for (const std::string& note : command.flags.notes()) job.note(note);
}

}  // namespace wt
