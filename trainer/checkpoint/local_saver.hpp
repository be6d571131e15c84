// Saves copies into the memory of nodes, one at a time: training stands still while the state is copied to host memory;
// then a thread sends it to a peer, writes it for the own node, and writes what peers have sent.
#pragma once
#include <atomic>
#include <functional>
#include <future>
#include <vector>

#include "trainer/checkpoint/checkpoint.hpp"
#include "trainer/checkpoint/local_copy.hpp"
#include "trainer/checkpoint/packed_state.hpp"
#include "trainer/communication/rank_links.hpp"

namespace wt {

/// Collective over all ranks. A copy that cannot be written is told on stderr, and training goes on without it.
class LocalSaver {
 public:
  using Done = std::function<void(const SaveTimes&)>;
  /// All but `done` and `groups` outlive this. `done` hears of every finished save, on the training thread.
  LocalSaver(const CopySite& site, const RunSpec& run, RankLinks& links, const std::vector<ShardedGroup>& groups,
             Done done);

  /// A save under way is given up: what is half written is no copy.
  ~LocalSaver() { given_up_ = true; }

  /// Waits for the save before, copies, returns. Throws PeerLost.
  void save(std::int64_t step, const SamplerState& sampler, const std::vector<ShardedGroup>& groups);
  /// Once a step: ends a save that is over.
  void poll();
  /// Waits for the save under way. Throws PeerLost.
  void finish();

 private:
  bool keeps() const { return site_.plan.keeps[static_cast<std::size_t>(site_.rank)]; }
  /// The thread.
  void write_and_exchange();
  void keep_received();
  void write(const char* level, std::int64_t shard, std::span<const float> values);

  const CopySite& site_;
  const RunSpec& run_;
  RankLinks& links_;
  Done done_;
  std::vector<Link> out_, in_;
  PackedState own_;
  std::vector<PackedState> received_;  ///< by in_
  CopyRecord record_;                  ///< of the save under way
  SaveTimes times_;
  double begun_at_s_ = 0;
  std::vector<Pending> moving_;
  std::atomic<bool> given_up_ = false;
  std::future<void> under_way_;  ///< last: its thread ends before the rest goes
};

}  // namespace wt
