// manifest.json of a checkpoint folder: which files it is made of, of which step and of which model. It may have come
// from anywhere, so that nothing outside the folder is ever read for it.
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
/// What has the name of a checkpoint, newest first. Throws Error{usage} where something is there that cannot be listed.
std::vector<std::filesystem::path> checkpoint_folders(const std::filesystem::path& folder);

/// The manifest. Throws Error{usage} where it cannot be read, is of another schema, is not as it was written
/// (sealed_document.hpp), lacks a key, names a step that is not its folder's, a file twice, or one that is not in its
/// folder: then this is no checkpoint of ours.
nlohmann::json read_manifest(const std::filesystem::path& checkpoint);

}  // namespace wt
