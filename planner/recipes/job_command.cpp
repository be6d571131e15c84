#include "planner/recipes/job_command.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <regex>

#include "configs/base/error.hpp"

namespace wt {
namespace {

bool has_pattern(const std::string& text, const char* pattern) {
  constexpr std::size_t kMost = 1 << 16;  // a pattern is searched from every letter
  return std::regex_search(text.substr(0, kMost), std::regex(pattern));
}

/// The value behind a variable or a short flag, without quotes; "" = none.
std::string value_behind(const std::string& text, const std::string& pattern) {
  constexpr std::size_t kMost = 1 << 16;
  std::smatch found;
  const std::string begin = text.substr(0, kMost);
  if (!std::regex_search(begin, found, std::regex(pattern + "[\"']?([^\\s\"';]+)"))) return "";
  return found[1].str();
}

/// A variable of run_train.sh, set before it; "${CONFIG_FILE:-"x"}" is x.
std::string variable(const std::string& text, const std::string& name, const RecipeSource& source) {
  if (const auto given = source.variables.find(name); given != source.variables.end()) return given->second;
  std::string value = value_behind(text, "(?:^|\\s)" + name + "=");
  if (const std::size_t fallback = value.find(":-"); value.starts_with("${") && fallback != std::string::npos) {
    value = value_behind(text, "(?:^|\\s)" + name + "=[\"']?\\$\\{" + name + ":-");
    if (value.ends_with('}')) value.pop_back();
  }
  return value;
}

std::string taken(Settings& flags, const std::string& key) {
  const std::string value = flags.text(key, "");
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
  return has_pattern(text, "run_train\\.sh|torchtitan\\.train|torchtitan/train\\.py|--job\\.config[_-]file");
}

bool is_automodel_command(const std::string& text) {
  return has_pattern(text, "\\bautomodel\\b|nemo_automodel") &&
         has_pattern(text, "(-c|--config)[ =]+[\"']?\\S+\\.ya?ml|automodel\\s+\\S+\\.ya?ml");
}

JobCommand job_command(const std::string& text, const std::string& origin, const RecipeSource& source) {
  JobCommand out{.flags = settings_from_shell(text, origin, source), .file = "", .module = "", .config = ""};
  for (const char* key : {"job.config-file", "job.config_file"})
    if (out.flags.has(key)) out.file = taken(out.flags, key);
  const std::string config = taken(out.flags, "config");
  const bool names_file = config.ends_with(".yaml") || config.ends_with(".yml") || config.ends_with(".toml");
  (names_file ? out.file : out.config) = out.file.empty() || !names_file ? config : out.file;
  out.module = taken(out.flags, "module");
  if (out.file.empty()) out.file = value_behind(text, "(?:^|\\s)-c\\s+");
  if (out.file.empty()) out.file = value_behind(text, "\\bautomodel\\s+(?=\\S+\\.ya?ml)");
  if (out.file.empty() && out.config.empty()) {
    out.file = variable(text, "CONFIG_FILE", source);
    out.module = variable(text, "MODULE", source), out.config = variable(text, "CONFIG", source);
  }
  for (const std::string* name : {&out.file, &out.module, &out.config})
    if (name->find('$') != std::string::npos)
      throw_usage("{}: found {}, which the script does not set, needs the job's name; give --env NAME=VALUE", origin, *name);
  const Settings::Value gpus = scalar_of_word(variable(text, "NGPU", source));
  out.gpus = out.flags.integer("launch.gpus", gpus.is_number_integer() ? gpus.get<std::int64_t>() : 0);
  if (has_pattern(text, "--nproc[_-]per[_-]node[= ]+[0-9]+") && out.gpus == 0) {
    const Settings::Value each = scalar_of_word(value_behind(text, "--nproc[_-]per[_-]node[= ]+"));
    if (each.is_number_integer()) out.gpus = each.get<std::int64_t>();
  }
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
    job.put(key, negated                                    ? Settings::Value(false)
                 : is_list(key) && entry.value.is_string() ? list_of(entry.value.get<std::string>())
                                                           : entry.value);
  }
  for (const std::string& note : command.flags.notes()) job.note(note);
}

}  // namespace wt
