// Restores the training state from the memory of nodes. A rank reads its part from its own node, or receives it from a
// rank of a node that has it.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "configs/files/scenario.hpp"
#include "trainer/checkpoint/local_copy.hpp"
#include "trainer/checkpoint/packed_state.hpp"
#include "trainer/communication/rank_links.hpp"

namespace wt {

/// A step whose parts are all in some node's memory, according to the records. All parts come from one start.
struct CopyCandidate {
  std::int64_t step = 0;
  std::string history;
  SamplerState sampler;
  std::vector<std::string> notes;  ///< as LoadedCheckpoint::notes
};

/// Every call is collective over all ranks. Rank 0 reports on stderr which copies are passed over.
class LocalLoader {
 public:
  /// All arguments must outlive this.
  LocalLoader(const CopySite& site, const RunSpec& run, Communicators& communicators, RankLinks& links,
              std::vector<ShardedGroup>& groups);

  /// Newest first, the same on all ranks.
  const std::vector<CopyCandidate>& candidates() const { return candidates_; }
  /// Which settings differ if some node's memory has a copy of another run; the same on all ranks. "" = no such copy.
  const std::string& another_run() const { return another_run_; }
  /// Reads every part on its node and compares it with its checksums. False if some part has no whole copy on any node.
  bool verify(const CopyCandidate& candidate);
  /// Fills the state with the candidate that verify() checked last. Returns `local` if every rank found its part on its
  /// own node, `peer` if some received it. Throws PeerLost, and Error{runtime} if received bytes differ from those
  /// sent.
  CopyLevel load();

 private:
  /// The copies on this rank's node that it reads: its own part, and its share of the parts that no rank of this node
  /// owns.
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
  std::map<std::int64_t, PackedState> read_;                  ///< key: part; read by this rank
  std::map<std::int64_t, std::vector<std::int64_t>> having_;  ///< key: part; the ranks that have read it
};

}  // namespace wt
