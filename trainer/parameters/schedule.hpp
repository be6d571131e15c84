// Learning rate: linear warm-up, then cosine to a fraction of the peak (LLM Foundry's cosine_with_warmup).
#pragma once
#include <cmath>
#include <cstdint>
#include <numbers>

#include "configs/spec/run.hpp"

namespace wt {

/// Of a step counted from 1: lr * step / warm-up until the warm-up ends, then
/// lr * (a + (1 - a) * (1 + cos(pi * p)) / 2), p = share of the steps after the warm-up that are done.
inline double learning_rate(const OptimizerSpec& o, std::int64_t step, std::int64_t steps) {
  if (step <= o.warmup_steps) return o.lr * static_cast<double>(step) / static_cast<double>(o.warmup_steps);
  const double span = static_cast<double>(std::max<std::int64_t>(1, steps - o.warmup_steps));
  const double p = static_cast<double>(step - o.warmup_steps) / span;
  return o.lr * (o.final_lr_fraction + (1 - o.final_lr_fraction) * 0.5 * (1 + std::cos(std::numbers::pi * p)));
}

}  // namespace wt
