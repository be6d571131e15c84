// manifest.json of a checkpoint folder: its files, step and model. A manifest may come from an untrusted source, so
// that nothing outside its folder is ever read because of it.
#pragma once
#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace wt {

inline constexpr const char* kCheckpointSchema = "windtunnel.checkpoint/3";
inline constexpr std::string_view kStepPrefix = "step-";

/// "step-00000012": the folder of a checkpoint.
std::string step_name(std::int64_t step);
/// Folders named like a checkpoint, newest first. Throws Error{usage} where the folder exists but cannot be listed.
std::vector<std::filesystem::path> checkpoint_folders(const std::filesystem::path& folder);

/// Reads a manifest. Throws Error{usage} where it cannot be read, has another schema, was changed
/// (sealed_document.hpp), lacks a key, names a step other than its folder's, a file twice, or a file outside its
/// folder: then this is not a checkpoint of ours.
nlohmann::json read_manifest(const std::filesystem::path& checkpoint);

}  // namespace wt
