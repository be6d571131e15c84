#include "trainer/data/batches_ahead.hpp"

#include <utility>

namespace wt {

BatchesAhead::BatchesAhead(Sampler& sampler, std::int64_t global_batch, std::function<bool(std::int64_t)> skips,
                           std::int64_t ahead, std::function<void(const std::vector<std::int64_t>&)> drawn)
    : sampler_(sampler),
      global_batch_(global_batch),
      skips_(std::move(skips)),
      ahead_(ahead),
      drawn_(std::move(drawn)) {}

BatchAhead BatchesAhead::next() {
  while (std::cmp_less_equal(queue_.size(), ahead_)) {
    DrawnBatch batch = next_trained_batch(sampler_, global_batch_, skips_);
    drawn_(batch.samples);
    queue_.push_back({std::move(batch), sampler_.state()});
  }
  BatchAhead first = std::move(queue_.front());
  queue_.pop_front();
  return first;
}

}  // namespace wt
