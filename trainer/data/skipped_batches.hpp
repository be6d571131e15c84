// Batches that a run leaves out, for instance after a loss spike (PaLM, Chowdhery et al. 2022, section 5.1): their
// samples are drawn and not trained on, so that every other batch is what it would have been.
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

/// What a step is trained on, and what was left out before it.
struct DrawnBatch {
  std::vector<std::int64_t> samples;
  std::vector<SkippedBatch> skipped;
};

/// The next batch that `skips` (of its number) does not leave out. Throws as Sampler::next_batch.
DrawnBatch next_trained_batch(Sampler& sampler, std::int64_t global_batch,
                              const std::function<bool(std::int64_t batch)>& skips);

/// The first batch that `skips` leaves out and that a run which has done `steps` and drawn `batches` was trained on; 0
/// = none, as far as their number tells.
std::int64_t trained_although_skipped(std::int64_t steps, std::int64_t batches,
                                      const std::function<bool(std::int64_t batch)>& skips);

}  // namespace wt
