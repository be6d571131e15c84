// Presets by name: "hgx-h100" means clusters/hgx-h100.yaml of the folder configs/, unless a file of that name exists.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

namespace wt {

/// The folder configs/: $WINDTUNNEL_CONFIGS, otherwise that which belongs to this program (data_path).
std::filesystem::path configs_folder();
/// `kind` is a subfolder of configs ("models"). Throws Error{usage} listing the presets, nearest first.
std::filesystem::path find_config(const std::string& kind, const std::string& name_or_file);
/// Names of the presets of a kind, sorted.
std::vector<std::string> preset_names(const std::string& kind);

}  // namespace wt
