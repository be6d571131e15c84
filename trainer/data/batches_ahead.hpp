// Draws batches before they are trained on, so that their shards can be fetched in the meantime.
#pragma once
#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

#include "trainer/data/skipped_batches.hpp"

namespace wt {

struct BatchAhead {
  DrawnBatch batch;
  SamplerState after;  ///< of the sampler right after this batch: what a checkpoint of the step stores
};

class BatchesAhead {
 public:
  /// Draws `ahead` batches in advance from `sampler`, which must outlive it, and passes the samples of each to `drawn`.
  BatchesAhead(Sampler& sampler, std::int64_t global_batch, std::function<bool(std::int64_t batch)> skips,
               std::int64_t ahead, std::function<void(const std::vector<std::int64_t>& samples)> drawn);
  /// Throws as Sampler::next_batch.
  BatchAhead next();

 private:
  Sampler& sampler_;
  std::int64_t global_batch_;
  std::function<bool(std::int64_t)> skips_;
  std::int64_t ahead_;
  std::function<void(const std::vector<std::int64_t>&)> drawn_;
  std::deque<BatchAhead> queue_;
};

}  // namespace wt
