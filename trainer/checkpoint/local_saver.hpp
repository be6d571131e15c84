// Saves copies into the memory of nodes, one at a time. Training stops while the state is copied to host memory; then a
// thread sends it to a peer, writes it on its own node, and writes the parts that peers have sent.
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

/// Collective over all ranks. If a copy cannot be written, stderr says so, and training continues without it.
class LocalSaver {
 public:
  using Done = std::function<void(const SaveTimes&)>;
  /// All arguments except `done` and `groups` must outlive this. `done` is called for every finished save, on the
  /// training thread.
  LocalSaver(const CopySite& site, const RunSpec& run, RankLinks& links, const std::vector<ShardedGroup>& groups,
             Done done);

  /// Abandons a running save; incomplete files do not count as a copy.
  ~LocalSaver() { given_up_ = true; }

  /// Waits for the previous save, copies and returns. Throws PeerLost.
  void save(std::int64_t step, const SamplerState& sampler, const std::vector<ShardedGroup>& groups);
  /// Called once a step: completes a save whose thread has finished.
  void poll();
  /// Waits for the running save. Throws PeerLost.
  void finish();

 private:
  bool keeps() const { return site_.plan.keeps[static_cast<std::size_t>(site_.rank)]; }
  /// Runs in the thread.
  void write_and_exchange();
  void keep_received();
  void write(const char* level, std::int64_t shard, std::span<const float> values);

  const CopySite& site_;
  const RunSpec& run_;
  RankLinks& links_;
  Done done_;
  std::vector<Link> out_, in_;
  PackedState own_;
  std::vector<PackedState> received_;  ///< in the order of in_
  CopyRecord record_;                  ///< of the running save
  SaveTimes times_;
  double begun_at_s_ = 0;
  std::vector<Pending> moving_;
  std::atomic<bool> given_up_ = false;
  std::future<void> under_way_;  ///< the last member, so that its thread ends before the others are destroyed
};

}  // namespace wt
