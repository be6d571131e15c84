#include "trainer/data/skipped_batches.hpp"

#include "configs/base/json_members.hpp"

namespace wt {

WT_TO_JSON(SkippedBatch, batch, samples)

nlohmann::json to_json(const std::vector<SkippedBatch>& skipped) { return nlohmann::json(skipped); }

DrawnBatch next_trained_batch(Sampler& sampler, std::int64_t global_batch,
                              const std::function<bool(std::int64_t batch)>& skips) {
  DrawnBatch out;
  for (std::int64_t batch = sampler.batches_drawn(sampler.state(), global_batch) + 1; skips(batch); ++batch)
    out.skipped.push_back({batch, sampler.next_batch(global_batch)});
  out.samples = sampler.next_batch(global_batch);
  return out;
}

std::int64_t trained_although_skipped(std::int64_t steps, std::int64_t batches,
                                      const std::function<bool(std::int64_t batch)>& skips) {
  std::int64_t left_out = batches - steps, last = 0;
  for (std::int64_t batch = 1; batch <= batches; ++batch)
    if (skips(batch) && left_out-- <= 0 && last == 0) last = batch;
  return last;
}

}  // namespace wt
