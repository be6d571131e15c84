// A run's initial weights: those of load_path, or an adapter with its base weights.
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "configs/files/run.hpp"
#include "trainer/parameters/hugging_face.hpp"
#include "trainer/safetensors/adapter.hpp"

namespace wt {

class StartingWeights {
 public:
  /// `folder`: the local load_path. Reads headers, and an adapter's factors. Throws Error{usage} as PretrainedWeights
  /// does; also for an adapter in a run without peft_config, or with another one, and for a base_model_name_or_path
  /// that is not a local folder.
  StartingWeights(const std::filesystem::path& folder, const RunSpec& run);
  /// Fills the master slices of a rank's groups.
  void load(std::vector<ShardedGroup>& groups) const;

 private:
  std::string origin_;
  const RunSpec& run_;  ///< must outlive this
  std::optional<Adapter> adapter_;
  std::optional<PretrainedWeights> weights_;
};

/// The weights that the run's adapter applies to: load_path, or the base that the adapter there names. Throws
/// Error{usage} if it names none.
std::string base_of_adapter(const std::string& load_path);

/// Writes PEFT's folder with this rank's copy of the run's adapter.
void export_adapter(const std::filesystem::path& folder, const RunSpec& run, const std::vector<ShardedGroup>& groups);

}  // namespace wt
