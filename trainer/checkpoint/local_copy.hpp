// Copies of the training state in the memory of nodes: the contents of a node's folder, and how all ranks agree on
// them.
//   OUT/nodes/NODE/local/step-N/shard-00001.safetensors   a part of the state that ranks of this node hold
//   OUT/nodes/NODE/peer/step-N/shard-00002.safetensors    a part that another node has sent
// Each has a record, shard-00001.json, in the same folder. It is written last and contains its own checksum: a part
// without a valid record does not count. A part has the values of one rank, group after group, so that it can be read
// only by a run that divides the state in the same way.
#pragma once
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "configs/files/run.hpp"
#include "trainer/checkpoint/copy_plan.hpp"
#include "trainer/communication/communicator.hpp"
#include "trainer/data/sampler.hpp"
#include "trainer/parameters/weights.hpp"

namespace wt {

/// Where copies are written, and what distinguishes them. The same on all ranks, except for `folder`.
struct CopySite {
  std::filesystem::path folder;  ///< of this rank's node
  std::int64_t rank = 0;
  std::vector<CopyPlace> places;      ///< by rank
  std::vector<std::int64_t> leaders;  ///< by rank: the first on its node
  CopyPlan plan;
  /// Identifies this start of the run, because copies of one step from two starts are never mixed.
  std::string history;
  const CopyPlace& own() const { return places[static_cast<std::size_t>(rank)]; }
  bool leads() const { return leaders[static_cast<std::size_t>(rank)] == rank; }
};

/// Collective. Creates the node's folder. With local_checkpoints.folder it is a link to a new folder there, in the
/// node's own memory. Throws Error{usage} on every rank if one cannot be created.
CopySite make_copy_site(const std::filesystem::path& output, const RunSpec& run, const std::string& node,
                        const std::string& rack, Communicators& communicators);

/// The number of values in one rank's state, the same on all ranks, and the values themselves.
std::int64_t packed_elements(const std::vector<ShardedGroup>& groups);
void pack_state(const std::vector<ShardedGroup>& groups, float* values);
void unpack_state(const float* values, const std::vector<ShardedGroup>& groups);

/// The contents of a record, apart from its file: the state and the run that it belongs to.
struct CopyRecord {
  std::int64_t step = 0;
  std::string history;
  std::int64_t shard = 0;
  SamplerState sampler;
};

/// Writes a part and then its record. Throws Error{runtime} if that fails.
void write_copy(const std::filesystem::path& level, const CopyRecord& record, const RunSpec& run,
                std::span<const float> values);
/// Removes copies of this part that are older than `step`, except for the newest `keep`.
void remove_older_copies(const std::filesystem::path& level, std::int64_t shard, std::int64_t step, std::int64_t keep);
/// Removes a node's copies that are newer than `step` or that the run cannot read (because it divides the state in
/// another way, for instance), and incomplete files. No rank may write meanwhile.
void clean_node_folder(const std::filesystem::path& folder, std::int64_t step, const RunSpec& run);
/// Removes the folders of nodes that have no ranks any more, because spares replaced them or the run has shrunk. Keeps
/// links to folders that do not exist on this machine: they are in the memory of another one, which may return.
void remove_other_nodes(const CopySite& site);

/// A part in the memory of a node, as its record describes it.
struct FoundCopy {
  CopyRecord record;
  std::filesystem::path file;
  std::int64_t bytes = 0;
  std::string header_xxh3;
  std::vector<std::string> notes;  ///< as LoadedCheckpoint::notes
};
/// A copy from which the run cannot continue, and the reason.
struct PassedOverCopy {
  std::string why;
  bool another_run = false;  ///< it is whole but belongs to a run with other settings
};
/// The copies of this run that match its present division of the state. Others are listed in `passed_over`.
std::vector<FoundCopy> find_copies(const std::filesystem::path& folder, const RunSpec& run,
                                   std::vector<PassedOverCopy>& passed_over);
/// Reads a whole copy. Throws Error{usage} if the content or the size of the file is not as written.
void read_copy(const FoundCopy& copy, std::span<float> values);

}  // namespace wt
