// Copies of the training state in the memory of nodes: what a node's folder holds, and how all ranks agree on it.
//   OUT/nodes/NODE/local/step-N/shard-00001.safetensors   a part of the state that ranks of this node hold
//   OUT/nodes/NODE/peer/step-N/shard-00002.safetensors    a part that a node elsewhere has sent
// Beside each is its record, shard-00001.json, which is written last and carries a checksum of itself: a part without a
// whole one is not there. The numbers of a part are those of one rank, group after group, so that only the same cut of
// the state can be read back.
#pragma once
#include <filesystem>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "configs/files/run.hpp"
#include "trainer/checkpoint/copy_plan.hpp"
#include "trainer/communication/communicator.hpp"
#include "trainer/data/sampler.hpp"
#include "trainer/parameters/weights.hpp"

namespace wt {

/// Where copies go and what they are told apart by; the same on all ranks but for `folder`.
struct CopySite {
  std::filesystem::path folder;  ///< of this rank's node
  std::int64_t rank = 0;
  std::vector<CopyPlace> places;      ///< by rank
  std::vector<std::int64_t> leaders;  ///< by rank: the first on its node
  CopyPlan plan;
  /// Of this start. Copies of one step that two starts have made are never mixed.
  std::string history;
  const CopyPlace& own() const { return places[static_cast<std::size_t>(rank)]; }
  bool leads() const { return leaders[static_cast<std::size_t>(rank)] == rank; }
};

/// Collective. Makes the node's folder; with local_checkpoints.folder it is a link to a new one there, which is the
/// node's own memory. Throws Error{usage} on every rank where one cannot be made.
CopySite make_copy_site(const std::filesystem::path& output, const RunSpec& run, const std::string& node,
                        const std::string& rack, Communicators& communicators);

/// Numbers of one rank's state, the same on all ranks, and these numbers.
std::int64_t packed_elements(const std::vector<ShardedGroup>& groups);
void pack_state(const std::vector<ShardedGroup>& groups, float* values);
void unpack_state(const float* values, const std::vector<ShardedGroup>& groups);

/// What a record says beside the file: which state it is, of which run.
struct CopyRecord {
  std::int64_t step = 0;
  std::string history;
  std::int64_t shard = 0;
  SamplerState sampler;
};

/// Writes a part and then its record. Throws Error{runtime} when it could not be written.
void write_copy(const std::filesystem::path& level, const CopyRecord& record, const RunSpec& run,
                std::span<const float> values);
/// Of this part, keeps the newest `keep` older than `step`.
void remove_older_copies(const std::filesystem::path& level, std::int64_t shard, std::int64_t step, std::int64_t keep);
/// Removes of a node all copies that are newer than `step` or that the run cannot read, of another cut for instance,
/// and what was left half written. Nothing may be written meanwhile.
void clean_node_folder(const std::filesystem::path& folder, std::int64_t step, const RunSpec& run);
/// Removes the folders of nodes that no rank is on any more: spares have taken their places, or the run has shrunk.
/// A link to a folder that this machine has not stays: it is the memory of another one, and may be in use again.
void remove_other_nodes(const CopySite& site);

/// A part that a node has, by its record.
struct FoundCopy {
  CopyRecord record;
  std::filesystem::path file;
  std::int64_t bytes = 0;
  std::string header_xxh3;
  std::vector<std::string> notes;  ///< as LoadedCheckpoint::notes
};
/// One that the run cannot go on from, and why.
struct PassedOverCopy {
  std::string why;
  bool another_run = false;  ///< it is whole, and of a run with other settings
};
/// Those of the run, cut as it is now. What is not so is named in `passed_over`.
std::vector<FoundCopy> find_copies(const std::filesystem::path& folder, const RunSpec& run,
                                   std::vector<PassedOverCopy>& passed_over);
/// Reads one whole. Throws Error{usage}: the file is not the one that was written, or not so long.
void read_copy(const FoundCopy& copy, std::span<float> values);

}  // namespace wt
