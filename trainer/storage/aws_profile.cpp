#include "trainer/storage/aws_profile.hpp"

#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "configs/base/error.hpp"
#include "configs/base/lookup.hpp"
#include "configs/base/text.hpp"

namespace wt {
namespace {

std::string stripped(const std::string& text) {
  const auto begin = text.find_first_not_of(" \t\r");
  return begin == std::string::npos ? "" : text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

/// Adds the section's keys, without replacing existing ones. Returns whether the file has the section.
bool add_section(const std::filesystem::path& file, const std::string& section,
                 std::map<std::string, std::string>& keys) {
  std::error_code none;
  if (!std::filesystem::exists(file, none)) return false;
  std::istringstream lines(read_file(file, "an AWS configuration"));
  bool inside = false, found = false;
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    const bool nested = line.starts_with(' ') || line.starts_with('\t');  // keys below "s3 ="
    line = stripped(line);
    if (line.empty() || line[0] == '#' || line[0] == ';') continue;
    if (line[0] == '[' && line.back() == ']') {
      inside = stripped(line.substr(1, line.size() - 2)) == section;
      found = found || inside;
      continue;
    }
    const auto equals = line.find('=');
    if (equals == std::string::npos)
      throw_usage("{}: line {} is no [section], key = value or # comment; correct it", file.string(), number);
    if (inside && !nested) keys.emplace(lower(stripped(line.substr(0, equals))), stripped(line.substr(equals + 1)));
  }
  return found;
}

}  // namespace

std::optional<std::string> environment_variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr || *value == '\0' ? std::nullopt : std::optional<std::string>(value);
}

std::map<std::string, std::string> aws_profile() {
  const std::optional<std::string> asked = environment_variable("AWS_PROFILE");
  const std::string name = asked.value_or("default");
  const std::filesystem::path home = environment_variable("HOME").value_or("/") + std::string("/.aws");
  const auto path = [&](const char* variable, const char* file) {
    const auto set = environment_variable(variable);
    return set ? std::filesystem::path(*set) : home / file;
  };
  const auto credentials = path("AWS_SHARED_CREDENTIALS_FILE", "credentials"),
             config = path("AWS_CONFIG_FILE", "config");
  std::map<std::string, std::string> keys;
  bool found = add_section(credentials, name, keys);
  if (name == "default") found = add_section(config, name, keys) || found;
  found = add_section(config, "profile " + name, keys) || found;
  if (asked && !found)
    throw_usage("AWS_PROFILE: found {}, allowed is a profile of {} or {}; correct it or unset it", name,
                credentials.string(), config.string());
  return keys;
}

std::string aws_region() {
  for (const char* name : {"AWS_REGION", "AWS_DEFAULT_REGION"})
    if (const auto region = environment_variable(name)) return *region;
  return value_or(aws_profile(), "region", "us-east-1");
}

}  // namespace wt
