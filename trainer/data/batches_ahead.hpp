// Batches that are drawn before they are trained on, so that their shards can be fetched meanwhile.
#pragma once
#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

#include "trainer/data/skipped_batches.hpp"

namespace wt {

struct BatchAhead {
  DrawnBatch batch;
  SamplerState after;  ///< of the sampler, had nothing more been drawn: what a checkpoint of the step holds
};

class BatchesAhead {
 public:
  /// Draws from `sampler`, which must outlive it, `ahead` batches before they are asked for; each goes to `drawn` then.
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
