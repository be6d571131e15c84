#include "trainer/storage/mirror.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "configs/base/atomic_file.hpp"
#include "configs/base/text.hpp"
#include "trainer/safetensors/manifest.hpp"
#include "trainer/safetensors/safetensors.hpp"
#include "trainer/storage/parallel_parts.hpp"

namespace wt {
namespace {

namespace fs = std::filesystem;
using Kind = StoreFailed::Kind;

constexpr const char* kManifest = "manifest.json";
constexpr std::uint64_t kManifest_bytes = 256 << 20;  ///< more than the manifest of a million files
constexpr unsigned kFilesAtOnce = 4;

std::string manifest_name(std::int64_t step) { return step_name(step) + "/" + kManifest; }

/// The step of "step-00000012/manifest.json"; none for any other name.
std::optional<std::int64_t> step_of_manifest(const std::string& name) {
  const auto slash = name.find('/');
  if (slash == std::string::npos || name.substr(slash + 1) != kManifest || !name.starts_with(kStepPrefix)) return {};
  const std::string digits = name.substr(kStepPrefix.size(), slash - kStepPrefix.size());
  if (digits.empty() || digits.size() > 18 || digits.find_first_not_of("0123456789") != std::string::npos) return {};
  return std::stoll(digits);
}

struct MirroredFile {
  std::string name;
  WrittenFile written;
};

std::vector<MirroredFile> files_of(const fs::path& checkpoint) {
  std::vector<MirroredFile> files;
  const nlohmann::json manifest = read_manifest(checkpoint);
  for (const auto& file : manifest.at("files"))
    files.push_back({file.at("name"), {file.at("bytes"), file.at("header_xxh3")}});
  return files;
}

}  // namespace

std::vector<std::int64_t> CheckpointMirror::steps() {
  std::vector<std::int64_t> found;
  for (const StoreEntry& file : store_.list(std::string(kStepPrefix)))
    if (const auto step = step_of_manifest(file.name)) found.push_back(*step);
  std::sort(found.rbegin(), found.rend());
  return found;
}

void CheckpointMirror::start(std::int64_t goes_on_from) {
  store_.abandon_uploads(std::string(kStepPrefix));
  for (const std::int64_t step : steps()) {
    if (step <= goes_on_from) break;
    const std::string name = manifest_name(step);
    store_.put(name + ".passed-over", store_.read(name, kManifest_bytes));
    store_.remove(name);
  }
}

void CheckpointMirror::upload(std::int64_t step, const fs::path& folder, const std::vector<std::string>& names) {
  if (store_.size(manifest_name(step)))
    throw StoreFailed(Kind::exists,
                      fmt::format("{}/{}: found a checkpoint of this step, allowed is none; choose another save_folder",
                                  store_.address(), step_name(step)));
  for (const std::string& name : names) store_.upload(folder / name, step_name(step) + "/" + name);
}

void CheckpointMirror::commit(const fs::path& checkpoint) {
  const std::string step = checkpoint.filename().string();
  const std::vector<MirroredFile> files = files_of(checkpoint);
  std::atomic<bool> given_up = false;
  in_parallel(files.size(), kFilesAtOnce, given_up, [&](std::uint64_t i) {
    const auto bytes = store_.size(step + "/" + files[i].name);
    if (bytes != static_cast<std::uint64_t>(files[i].written.bytes))
      throw StoreFailed(
          Kind::damaged,
          fmt::format("{}/{}/{}: found {}, needs {} bytes; upload it again", store_.address(), step, files[i].name,
                      bytes ? fmt::format("{} bytes", *bytes) : "nothing", files[i].written.bytes));
  });
  const std::string manifest = read_file(checkpoint / kManifest, "a manifest");
  try {
    store_.put(step + "/" + kManifest, manifest, /*only_if_absent=*/true);
  } catch (const StoreFailed& e) {
    if (e.kind() != Kind::exists || store_.read(step + "/" + kManifest, kManifest_bytes) != manifest) throw;
  }
  store_.put("latest", step + "\n");
}

void CheckpointMirror::retain(std::int64_t newest, std::int64_t keep) {
  std::int64_t kept = 0;
  for (const std::int64_t step : keep < 0 ? std::vector<std::int64_t>() : steps()) {
    if (step > newest || ++kept <= std::max<std::int64_t>(keep, 1)) continue;
    store_.remove(manifest_name(step));
    for (const StoreEntry& file : store_.list(step_name(step) + "/")) store_.remove(file.name);
  }
}

fs::path CheckpointMirror::fetched_to(std::int64_t step, const fs::path& folder) {
  return folder / (step_name(step) + ".partial") / step_name(step);
}

fs::path CheckpointMirror::begin_fetch(std::int64_t step, const fs::path& folder) {
  const fs::path begun = fetched_to(step, folder);
  fs::remove_all(begun.parent_path());
  fs::create_directories(begun);
  try {
    write_file_atomically(begun / kManifest, store_.read(manifest_name(step), kManifest_bytes));
    read_manifest(begun);
  } catch (...) {
    abandon_fetch(begun);
    throw;
  }
  return begun;
}

void CheckpointMirror::fetch_files(const fs::path& begun, std::uint64_t share, std::uint64_t shares) {
  std::vector<MirroredFile> own;
  const std::vector<MirroredFile> files = files_of(begun);
  for (std::uint64_t i = share; i < files.size(); i += shares) own.push_back(files[i]);
  std::atomic<bool> given_up = false;
  in_parallel(own.size(), shares > 1 ? 1 : kFilesAtOnce, given_up, [&](std::uint64_t i) {
    const auto& [file, written] = own[i];
    const std::string name = begun.filename().string() + "/" + file;
    std::string damage;
    for (int attempt = 0; attempt < 2; ++attempt) {  // a second try, because a bit may also flip in transit
      store_.fetch(name, begun / file, fetch_limit_s(static_cast<std::uint64_t>(written.bytes)));
      if (damage = damage_of(begun / file, written); damage.empty()) return;
    }
    throw StoreFailed(Kind::damaged,
                      fmt::format("{}/{}: found damage, needs what was written: {}; take another checkpoint",
                                  store_.address(), name, damage));
  });
}

fs::path CheckpointMirror::end_fetch(const fs::path& begun) {
  const fs::path partial = begun.parent_path(), target = partial.parent_path() / begun.filename();
  if (fs::exists(target))
    throw_runtime("{}: is there already, needs a place without it; remove it or load from it", target.string());
  fs::rename(begun, target);
  fs::remove_all(partial);
  return target;
}

void CheckpointMirror::abandon_fetch(const fs::path& begun) noexcept {
  std::error_code ignored;  // the next start removes incomplete folders
  fs::remove_all(begun.parent_path(), ignored);
}

}  // namespace wt
