#include "configs/files/find.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>

#include "configs/base/error.hpp"
#include "configs/base/installed.hpp"
#include "configs/base/nearest.hpp"
#include "configs/base/text.hpp"

namespace wt {

namespace {

constexpr const char* kEndings[] = {".yaml", ".json", ".csv"};  // not an editor's copy, not a README

}  // namespace

std::filesystem::path configs_folder() {
  if (const char* folder = std::getenv("WINDTUNNEL_CONFIGS")) return folder;
  static const std::filesystem::path own = data_path("configs");
  return own;
}

std::vector<std::string> preset_names(const std::string& kind) {
  std::vector<std::string> names;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(configs_folder() / kind, none))
    for (const char* extension : kEndings)
      if (entry.is_regular_file() && entry.path().extension() == extension)
        names.push_back(entry.path().stem().string());
  std::ranges::sort(names);
  return names;
}

std::filesystem::path find_config(const std::string& kind, const std::string& name_or_file) {
  std::error_code none;  // a name may be too long, or contain a file as a folder
  if (std::filesystem::is_regular_file(name_or_file, none)) return name_or_file;
  for (const char* extension : kEndings)
    if (auto file = configs_folder() / kind / (name_or_file + extension); std::filesystem::exists(file, none))
      return file;
  const auto names = preset_names(kind);
  throw_usage("'{}' is neither a file nor a preset in configs/{}{}; presets: {}", shortened(name_or_file), kind,
              did_you_mean(name_or_file, names), fmt::join(names, ", "));
}

}  // namespace wt
