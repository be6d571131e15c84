// Restores the training state from the memory of nodes: a rank reads its part on its own node, or a rank of the node
// that has it sends it.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "configs/files/scenario.hpp"
#include "trainer/checkpoint/local_copy.hpp"
#include "trainer/checkpoint/packed_state.hpp"
#include "trainer/communication/rank_links.hpp"

namespace wt {

/// A step of which every part is in some node's memory, by the records; all parts are of one start.
struct CopyCandidate {
  std::int64_t step = 0;
  std::string history;
  SamplerState sampler;
  std::vector<std::string> notes;  ///< as LoadedCheckpoint::notes
};

/// Collective over all ranks, every call. What is passed over is told on stderr by rank 0.
class LocalLoader {
 public:
  /// All outlive this.
  LocalLoader(const CopySite& site, const RunSpec& run, Communicators& communicators, RankLinks& links,
              std::vector<ShardedGroup>& groups);

  /// Newest first, the same on all ranks.
  const std::vector<CopyCandidate>& candidates() const { return candidates_; }
  /// Why a copy in some node's memory is of a run with other settings, the same on all ranks; "" = none is.
  const std::string& another_run() const { return another_run_; }
  /// Reads every part wherever it is and compares it with its checksums. False: no node has a whole copy of some part.
  bool verify(const CopyCandidate& candidate);
  /// Fills the state with what verify() has found last. local: each rank had its part on its own node; peer: some
  /// had it sent. Throws PeerLost, and Error{runtime} when what arrived is not what was sent.
  CopyLevel load();

 private:
  /// Of the copies on this rank's node, those that it reads: its own part, and its share of those of no rank here.
  std::vector<const FoundCopy*> to_read(const CopyCandidate& candidate) const;
  void list_candidates();

  const CopySite& site_;
  const RunSpec& run_;
  Communicators& communicators_;
  RankLinks& links_;
  std::vector<ShardedGroup>& groups_;
  std::vector<FoundCopy> found_;  ///< on this node
  std::vector<CopyCandidate> candidates_;
  std::string another_run_;
  std::map<std::int64_t, PackedState> read_;                  ///< by part, what this rank has read
  std::map<std::int64_t, std::vector<std::int64_t>> having_;  ///< by part, the ranks that have read it
};

}  // namespace wt
