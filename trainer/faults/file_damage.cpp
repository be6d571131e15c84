#include "trainer/faults/file_damage.hpp"

#include <xxhash.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "configs/base/error.hpp"

namespace wt {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

std::string bytes_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::stringstream bytes;
  bytes << in.rdbuf();
  return bytes.str();
}

/// Size and checksum; null where the file does not exist.
json state_of(const fs::path& file) {
  if (!fs::exists(file)) return nullptr;
  const std::string bytes = bytes_of(file);
  return {{"bytes", bytes.size()}, {"xxh3", fmt::format("{:016x}", XXH3_64bits(bytes.data(), bytes.size()))}};
}

/// Changes bytes in the middle of the file: inside the values, after the header.
void overwrite(const fs::path& file, const std::function<void(std::string&)>& change) {
  const std::uintmax_t middle = fs::file_size(file) / 2;
  std::fstream stream(file, std::ios::binary | std::ios::in | std::ios::out);
  std::string part(std::min<std::uintmax_t>(4096, fs::file_size(file) - middle), '\0');
  stream.seekg(static_cast<std::streamoff>(middle)).read(part.data(), static_cast<std::streamsize>(part.size()));
  change(part);
  stream.seekp(static_cast<std::streamoff>(middle)).write(part.data(), static_cast<std::streamsize>(part.size()));
  if (!stream.flush()) throw_runtime("{}: could not be damaged", file.string());
}

std::vector<fs::path> sorted(const fs::path& folder, const std::string& prefix, const std::string& suffix) {
  std::vector<fs::path> out;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(folder, none))
    if (const std::string name = entry.path().filename().string();
        name.starts_with(prefix) && name.ends_with(suffix) && !name.ends_with(".partial"))
      out.push_back(entry.path());
  std::ranges::sort(out);
  return out;
}

struct Newest {
  fs::path checkpoint, older;  ///< `older` is empty if there is only one
  std::vector<fs::path> shards;
};

Newest newest_of(const fs::path& checkpoints, FileDamage damage) {
  auto steps = sorted(checkpoints, "step-", "");
  if (steps.empty()) throw_usage("{}: holds no checkpoint to damage", checkpoints.string());
  // A local checkpoint may just have been begun.
  if (steps.size() > 1 && sorted(steps.back(), "shard-", ".safetensors").empty()) steps.pop_back();
  Newest out{steps.back(), steps.size() > 1 ? steps[steps.size() - 2] : fs::path(),
             sorted(steps.back(), "shard-", ".safetensors")};
  const bool needs_older = damage == FileDamage::old_manifest || damage == FileDamage::stale_latest;
  if (needs_older && out.older.empty())
    throw_usage("{}: {} needs an older checkpoint, found one alone", checkpoints.string(), to_string(damage));
  if (out.shards.size() < (damage == FileDamage::exchange ? 2U : 1U))
    throw_usage("{}: {} needs more shards than its {}", out.checkpoint.string(), to_string(damage), out.shards.size());
  return out;
}

/// The file to damage.
fs::path target_of(const Newest& newest, const fs::path& checkpoints, FileDamage damage) {
  if (damage == FileDamage::old_manifest) return newest.checkpoint / "manifest.json";
  if (damage == FileDamage::stale_latest) return checkpoints / "latest";
  return newest.shards.front();
}

void change(const fs::path& target, const Newest& newest, FileDamage damage) {
  switch (damage) {
    case FileDamage::flip_bit:
      return overwrite(target, [](std::string& part) { part[part.size() / 2] ^= 0x10; });
    case FileDamage::zero:
      return overwrite(target, [](std::string& part) { std::ranges::fill(part, '\0'); });
    case FileDamage::truncate:
      return fs::resize_file(target, fs::file_size(target) / 2);
    case FileDamage::remove:
      fs::remove(target);
      return;
    case FileDamage::exchange: {
      const fs::path aside = newest.checkpoint / "exchanged";
      fs::rename(target, aside);
      fs::rename(newest.shards.back(), target);
      return fs::rename(aside, newest.shards.back());
    }
    case FileDamage::old_manifest:
      fs::copy_file(newest.older / "manifest.json", target, fs::copy_options::overwrite_existing);
      return;
    case FileDamage::stale_latest:
      std::ofstream(target) << newest.older.filename().string() << "\n";
      return;
  }
}

}  // namespace

void wait_for_checkpoint(const fs::path& checkpoints, std::int64_t step) {
  const fs::path folder = checkpoints / fmt::format("step-{:08}", step), latest = checkpoints / "latest";
  for (int tenth = 0; tenth < 600; ++tenth) {
    std::ifstream in(latest);
    if (std::string name; std::getline(in, name) && name >= folder.filename().string()) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  throw_runtime("{}: not there after a minute", folder.string());
}

json damage_newest(const fs::path& checkpoints, FileDamage damage) {
  const Newest newest = newest_of(checkpoints, damage);
  const fs::path target = target_of(newest, checkpoints, damage);
  const json before = state_of(target);
  change(target, newest, damage);
  return {{"file", fs::relative(target, checkpoints).string()}, {"before", before}, {"after", state_of(target)}};
}

}  // namespace wt
