#include "trainer/safetensors/manifest.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "configs/base/error.hpp"
#include "configs/base/json_reader.hpp"
#include "trainer/safetensors/sealed_document.hpp"

namespace wt {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

/// Whether the name is a plain file name, not a path.
bool is_file_name(const std::string& name) {
  return !name.empty() && name != "." && name != ".." && name.find_first_of(std::string("/\0", 2)) == std::string::npos;
}

void check_files(const json& files) {
  std::set<std::string> names;
  for (const json& file : files) {
    const std::string name = file.at("name").get<std::string>();
    if (!is_file_name(name))
      throw_usage("manifest.json names '{}', allowed are files of its own folder; take another checkpoint", name);
    if (!names.insert(name).second) throw_usage("manifest.json names {} twice; take another checkpoint", name);
  }
}

/// A damaged manifest is refused.
json unsealed_manifest(const json& document) try { return unsealed(document); } catch (const Error& e) {
  throw_usage("manifest.json {}; take another checkpoint", e.what());
}

}  // namespace

std::string step_name(std::int64_t step) { return fmt::format("{}{:08}", kStepPrefix, step); }

std::vector<fs::path> checkpoint_folders(const fs::path& folder) {
  std::vector<fs::path> steps;
  std::error_code failed, none;
  // A dangling link, for instance to an unmounted file system, is an error: it cannot be listed.
  if (fs::symlink_status(folder, none).type() == fs::file_type::not_found) return steps;
  for (fs::directory_iterator entry(folder, failed), end; !failed && entry != end; entry.increment(failed)) {
    const std::string name = entry->path().filename().string();
    if (name.starts_with(kStepPrefix) && name.find_first_not_of("0123456789", kStepPrefix.size()) == std::string::npos)
      steps.push_back(entry->path());
  }
  if (failed)
    throw_usage("{}: found what cannot be listed ({}), needs a folder of checkpoints or nothing; fix or move it",
                folder.string(), failed.message());
  std::sort(steps.rbegin(), steps.rend());
  return steps;
}

json read_manifest(const fs::path& checkpoint) try {
  json manifest = read_json(checkpoint / "manifest.json");
  if (const std::string schema = manifest.value("schema", ""); schema != kCheckpointSchema)
    throw_usage("manifest.json has schema '{}', this build reads {}", schema, kCheckpointSchema);
  manifest = unsealed_manifest(manifest);
  for (const char* key : {"step", "sampler", "files"})
    if (!manifest.contains(key)) throw_usage("manifest.json lacks {}", key);
  if (const std::string named = step_name(JsonReader(manifest, "manifest.json").at("step").integer());
      named != checkpoint.filename())
    throw_usage("manifest.json is of {}, its folder is {}; take another checkpoint", named,
                checkpoint.filename().string());
  check_files(manifest.at("files"));
  return manifest;
} catch (const json::exception& e) {
  throw_usage("manifest.json: {}; take another checkpoint", e.what());
}

}  // namespace wt
