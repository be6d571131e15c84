// The contents of a checkpoint folder and the part that each rank owns, for saving and for loading.
#pragma once
#include <ATen/core/Tensor.h>

#include <atomic>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "configs/files/run.hpp"
#include "configs/files/run_settings.hpp"
#include "trainer/communication/communicator.hpp"
#include "trainer/parameters/weights.hpp"
#include "trainer/safetensors/manifest.hpp"
#include "trainer/safetensors/tensor_parts.hpp"

namespace wt {

/// The number n of ranks that together hold the training state once: ranks 0..n-1. The others hold copies.
inline std::int64_t state_ranks(const Layout& layout) { return Mesh(layout).size(Axis::state); }

std::filesystem::path step_folder(const std::filesystem::path& folder, std::int64_t step);
/// Writes the checkpoint's name into the file `latest` of the same folder, unless it already has it. Throws
/// Error{runtime} where it cannot be written.
void name_latest(const std::filesystem::path& checkpoint);
/// The name that PyTorch gives to file `index` of `files` of a rank; both count from 0 here.
std::string shard_file_name(std::int64_t rank, std::size_t index, std::size_t files);

/// Compares the settings in a checkpoint with those of the run.
struct SettingsCheck {
  std::string wrong;               ///< differing settings that make it another run, in words; "" = none
  bool model = false;              ///< one of those belongs to the model
  std::vector<std::string> notes;  ///< settings that may change and have: lines for the log
};
SettingsCheck check_settings(const RunSettings& saved, const RunSpec& run);
/// Describes the run's adapter and its base weights; null without an adapter.
nlohmann::json adapter_json(const RunSpec& run);
/// Whether `saved`, an earlier result of adapter_json(), describes the run's adapter with the same load_path. Older
/// checkpoints have no load_path. Only the path is compared: the weights found there may have changed since.
bool is_of_adapter(const nlohmann::json& saved, const RunSpec& run);

/// A rank waits this long while no rank transfers bytes to or from storage (kStorageMoves).
inline constexpr double kStoragePatience_s = 1800;
/// Waits for a key that another rank sets after it has written or read its files, and returns its value. Polls, so that
/// the store's own timeout does not end the wait. Throws Error{runtime} after `given_up` was set, and after patience_s
/// without any bytes to or from storage. Progress is checked once every patience_s, so that this may take twice as
/// long.
std::string wait_for(SharedStore& store, const std::string& key, const std::atomic<bool>* given_up = nullptr,
                     double patience_s = kStoragePatience_s);

/// The states of a parameter and their keys in a checkpoint; a frozen parameter has only its value.
inline std::vector<std::pair<std::string, const at::Tensor*>> states(const ShardedGroup& g,
                                                                     const std::string& parameter) {
  std::vector<std::pair<std::string, const at::Tensor*>> out{{parameter, &g.master}};
  if (g.exp_avg.defined()) out.emplace_back(state_key(parameter, "exp_avg"), &g.exp_avg);
  if (g.exp_avg_sq.defined()) out.emplace_back(state_key(parameter, "exp_avg_sq"), &g.exp_avg_sq);
  return out;
}

}  // namespace wt
