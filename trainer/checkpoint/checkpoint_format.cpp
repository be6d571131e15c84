#include "trainer/checkpoint/checkpoint_format.hpp"

#include <chrono>
#include <fstream>
#include <thread>

#include "configs/base/atomic_file.hpp"
#include "configs/base/error.hpp"
#include "trainer/communication/storage_progress.hpp"
#include "trainer/device/clocks.hpp"

namespace wt {

namespace fs = std::filesystem;
using nlohmann::json;

fs::path step_folder(const fs::path& folder, std::int64_t step) { return folder / step_name(step); }

void name_latest(const fs::path& checkpoint) {
  const fs::path latest = checkpoint.parent_path() / "latest";
  const std::string name = checkpoint.filename().string();
  std::ifstream in(latest);
  if (std::string named; std::getline(in, named) && named == name) return;
  write_file_atomically(latest, name + "\n");
}

std::string shard_file_name(std::int64_t rank, std::size_t index, std::size_t files) {
  return fmt::format("shard-{:05}-model-{:05}-of-{:05}.safetensors", rank + 1, index + 1, files);
}

std::string wait_for(SharedStore& store, const std::string& key, const std::atomic<bool>* given_up, double patience_s) {
  double since = Clocks::now().wall_s;
  std::string moved;
  // Thousands of ranks poll one store: the pauses grow, so that long waits cost few queries.
  for (auto pause = std::chrono::milliseconds(1); !store.has(key);
       pause = std::min(2 * pause, std::chrono::milliseconds(250))) {
    if (given_up && *given_up) throw_runtime("{}: given up, because the run ended", key);
    if (const double now = Clocks::now().wall_s; now - since > patience_s) {
      const std::string moves = store.has(kStorageMoves) ? store.get(kStorageMoves) : "";
      if (std::exchange(moved, moves) == moves)
        throw_runtime("{}: nothing heard for {:.0f} min; is a rank or the storage stuck?", key, patience_s / 60);
      since = now;
    }
    std::this_thread::sleep_for(pause);
  }
  return store.get(key);
}

SettingsCheck check_settings(const RunSettings& saved, const RunSpec& run) {
  SettingsCheck out;
  for (const SettingChange& change : changed_settings(saved, run_settings(run))) {
    if (change.allowed)
      out.notes.push_back(fmt::format("resumed with another {}: {}, was {}", change.key, change.now, change.was));
    else
      out.wrong += fmt::format("{}{}: the run says {}, it was {}", out.wrong.empty() ? "" : "; ", change.key,
                               change.now, change.was);
    out.model = out.model || (!change.allowed && change.key.starts_with("model."));
  }
  return out;
}

json adapter_json(const RunSpec& run) {
  if (!run.lora) return {};
  return {{"r", run.lora->rank},
          {"lora_alpha", run.lora->alpha},
          {"target_modules", run.lora->target_modules},
          {"load_path", run.load_path},
          {"base_model_name_or_path", run.adapter_base}};
}

bool is_of_adapter(const json& saved, const RunSpec& run) {
  const json expected = adapter_json(run);
  if (saved.is_null() || expected.is_null()) return saved == expected;
  const auto same = [&](const char* key) { return saved.at(key) == expected.at(key); };
  return same("r") && same("lora_alpha") && same("target_modules") &&
         (!saved.contains("load_path") || same("load_path"));
}

}  // namespace wt
