// Sharded checkpoints. One replica writes; each of its ranks writes one safetensors file with its slices of the fp32
// masters and AdamW moments, keyed by logical parameter, so that any other layout can read them back. Files go to
// step-N.partial; when all are synced and their checksums known, rank 0 writes manifest.json, renames the folder to
// step-N and points `latest` at it. A folder without a manifest, or whose files do not match it, is not a checkpoint.
#pragma once
#include <filesystem>
#include <optional>
#include <vector>

#include "configs/spec/run.hpp"
#include "trainer/communicator.hpp"
#include "trainer/data/sampler.hpp"
#include "trainer/weights.hpp"

namespace wt {

struct SaveTimes {
  double blocking_s = 0;  ///< training stood still for so long (writing is synchronous for now: all of it)
  double total_s = 0;
  double bytes = 0;  ///< written by this rank
};

/// Collective over all ranks. Throws Error{runtime} on every rank when one could not write; then nothing is left behind.
SaveTimes save_checkpoint(const std::filesystem::path& folder, std::int64_t step, const RunSpec& run,
                                const SamplerState& sampler, const std::vector<ShardedGroup>& groups,
                                Communicators& communicators);

struct LoadedCheckpoint {
  std::int64_t step = 0;
  SamplerState sampler;
  std::filesystem::path path;
};

/// Collective. Takes the newest valid checkpoint (rank 0 verifies sizes and checksums and tells the others; damaged ones
/// are named on stderr and passed over), fills the groups' slices. Nothing there: nullopt. Throws Error{usage} when it is
/// of another model.
std::optional<LoadedCheckpoint> load_newest_checkpoint(const std::filesystem::path& folder, const RunSpec& run,
                                                       std::vector<ShardedGroup>& groups, Communicators& communicators);

}  // namespace wt
