// What one rank does of a run: its part of the global batch, and what it has learned of its data.
#pragma once
#include <cstdint>

#include "configs/files/run.hpp"
#include "trainer/data/sample_order.hpp"

namespace wt {

struct RankWork {
  BatchShare share;        ///< of the global batch; ranks have different ones where replicas do not divide it
  Microbatches sequences;  ///< the share, split into the microbatches of a step
  /// Samples have max_seq_len tokens, so that the last one has no target, as in data sets of LLM Foundry; otherwise one
  /// token more.
  bool last_target_missing;

  /// Throws as share_of_batch.
  RankWork(const RunSpec& run, std::int64_t rank, bool last_target_missing)
      : share(share_of_batch(run.global_batch, rank / run.layout.context, run.layout.replicate,
                             run.layout.shard / run.layout.context)),
        sequences(Microbatches::split(share.count, run.layout.microbatch)),
        last_target_missing(last_target_missing) {}
};

}  // namespace wt
