// What a checkpoint folder holds and which rank owns what of it, for saving and loading alike.
#pragma once
#include <ATen/core/Tensor.h>

#include <algorithm>
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

/// Ranks 0..n-1 hold the training state once between them; the others hold copies of it.
inline std::int64_t state_ranks(const Layout& layout) { return Mesh(layout).size(Axis::state); }

std::filesystem::path step_folder(const std::filesystem::path& folder, std::int64_t step);
/// Writes the checkpoint's name into `latest` beside it, where it does not say so. Throws Error{runtime} where it
/// cannot be written.
void name_latest(const std::filesystem::path& checkpoint);
/// The name that PyTorch gives to file `index` of `files` of a rank; both count from 0 here.
std::string shard_file_name(std::int64_t rank, std::size_t index, std::size_t files);

/// What a run would go on from, compared with the run.
struct SettingsCheck {
  std::string wrong;               ///< settings that make it another run, in words; "" = none
  bool model = false;              ///< one of those is the model's
  std::vector<std::string> notes;  ///< what may be changed on purpose and was: lines for the log
};
SettingsCheck check_settings(const RunSettings& saved, const RunSpec& run);
/// Of the adapter and the weights that it is put on, null without one.
nlohmann::json adapter_json(const RunSpec& run);
/// Whether what adapter_json() once said is of the run's adapter, begun on the same load_path. Older ones name none.
/// The base is that of the beginning, whatever load_path leads to now.
bool is_of_adapter(const nlohmann::json& saved, const RunSpec& run);

/// The longest that a rank waits while no rank's storage moves (kStorageMoves).
inline constexpr double kStoragePatience_s = 1800;
/// The value of a key that another rank sets when its files are written or read, however long that takes: polls, so
/// that the store's own timeout does not end it. Throws Error{runtime} once `given_up` is set, and after patience_s in
/// which no bytes went to storage or came from there; it is looked at that often, so that it may take twice as long.
std::string wait_for(SharedStore& store, const std::string& key, const std::atomic<bool>* given_up = nullptr,
                     double patience_s = kStoragePatience_s);

/// The states of a parameter and the keys they have in a checkpoint: of a frozen one its value alone.
inline std::vector<std::pair<std::string, const at::Tensor*>> states(const ShardedGroup& g,
                                                                     const std::string& parameter) {
  std::vector<std::pair<std::string, const at::Tensor*>> out{{parameter, &g.master}};
  if (g.exp_avg.defined()) out.emplace_back(state_key(parameter, "exp_avg"), &g.exp_avg);
  if (g.exp_avg_sq.defined()) out.emplace_back(state_key(parameter, "exp_avg_sq"), &g.exp_avg_sq);
  return out;
}

}  // namespace wt
