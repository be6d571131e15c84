// Saves copies into the memory of nodes, one at a time: training stands still while the state is copied to host memory;
// then a thread writes it for the own node, and it travels to a peer, which writes it for its own.
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

  /// Waits for the save before, copies, returns. Throws PeerLost.
  void save(std::int64_t step, const SamplerState& sampler, const std::vector<ShardedGroup>& groups);
  /// Once a step: does what is due and waits for nothing.
  void poll() { advance(false); }
  void finish() { advance(true); }

 private:
  enum class Stage { idle, writing, moving, keeping };
  void advance(bool wait);
  void write_own();
  void keep_received();
  void write(const char* level, std::int64_t shard, std::span<const float> values);

  const CopySite& site_;
  const RunSpec& run_;
  RankLinks& links_;
  Done done_;
  std::vector<Link> out_, in_;
  PackedState own_;
  std::vector<PackedState> received_;  ///< by in_
  Stage stage_ = Stage::idle;
  CopyRecord record_;  ///< of the save under way
  SaveTimes times_;
  double begun_at_s_ = 0;
  std::atomic<bool> sealed_ = false;
  std::vector<Pending> moving_;
  std::future<void> written_, kept_;  ///< last: their threads end before the rest goes
};

}  // namespace wt
