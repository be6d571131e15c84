// What a run starts from: the weights that load_path names, or an adapter with the weights that it is put on.
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
  /// `folder`: load_path, where it is on this machine. Reads headers, and an adapter's factors. Throws Error{usage} as
  /// PretrainedWeights; an adapter in a run without peft_config, or of another than that; its base_model_name_or_path
  /// is no folder here.
  StartingWeights(const std::filesystem::path& folder, const RunSpec& run);
  /// Fills the master slices of a rank's groups.
  void load(std::vector<ShardedGroup>& groups) const;

 private:
  std::string origin_;
  const RunSpec& run_;  ///< outlives this
  std::optional<Adapter> adapter_;
  std::optional<PretrainedWeights> weights_;
};

/// The weights that the run's adapter is put on: load_path, or what the adapter there names as its base. Throws
/// Error{usage}: it names none.
std::string base_of_adapter(const std::string& load_path);

/// Writes PEFT's folder with the run's adapter as this rank has it.
void export_adapter(const std::filesystem::path& folder, const RunSpec& run, const std::vector<ShardedGroup>& groups);

}  // namespace wt
