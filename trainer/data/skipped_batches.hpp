// Batches that a run skips, for instance after a loss spike (PaLM, Chowdhery et al. 2022, section 5.1). Their samples
// are drawn but not trained on, so that all other batches stay the same.
#pragma once
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "trainer/data/sampler.hpp"

namespace wt {

struct SkippedBatch {
  std::int64_t batch = 0;  ///< its number in the sample order, from 1
  std::vector<std::int64_t> samples;
};

/// [{"batch": 5, "samples": [...]}, ...]
nlohmann::json to_json(const std::vector<SkippedBatch>& skipped);

/// The samples of a step, and the batches skipped before it.
struct DrawnBatch {
  std::vector<std::int64_t> samples;
  std::vector<SkippedBatch> skipped;
};

/// Draws the next batch that `skips` (called with its number) does not skip. Throws as Sampler::next_batch.
DrawnBatch next_trained_batch(Sampler& sampler, std::int64_t global_batch,
                              const std::function<bool(std::int64_t batch)>& skips);

/// The first batch in `skips` that a run of `steps` steps and `batches` drawn batches was nevertheless trained on; 0 =
/// none, as far as these numbers tell.
std::int64_t trained_although_skipped(std::int64_t steps, std::int64_t batches,
                                      const std::function<bool(std::int64_t batch)>& skips);

}  // namespace wt
