// The learning rate of a step: linear warm-up, then the run's schedule. Formulas are those of Composer 0.32.1
// (optim/scheduler.py) and LLM Foundry 0.22.0 (optim/scheduler.py).
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>

#include "configs/files/run.hpp"

namespace wt {

/// The factor of inverse_sqrt after t batches, t >= the warm-up.
inline double inverse_sqrt_factor(const OptimizerSpec& o, double t) {
  const double shifted = t + o.scale_steps - o.warmup_steps;
  return o.final_lr_fraction + (1 - o.final_lr_fraction) / std::sqrt(shifted / o.scale_steps);
}

/// The rate of a step, counted from 1, of `steps` in all. t, the number of batches, is the step itself, or one less
/// (OptimizerSpec::first_step). During the warm-up: lr x t / warm-up, times alpha_i. After it, with p the completed
/// share of the batches after the warm-up: lr x (a + (1 - a)(1 + cos(pi p)) / 2) for cosine, lr x (alpha_i + p (alpha_f
/// - alpha_i)) for linear, lr x alpha for constant, and for inverse_sqrt lr x (alpha_f_decay + (1 - alpha_f_decay) /
/// sqrt((t
/// - t_warmup + t_scale) / t_scale)), followed by a line to alpha_f_cooldown over the last t_cooldown batches.
inline double learning_rate(const OptimizerSpec& o, std::int64_t step, std::int64_t steps) {
  const double t = static_cast<double>(step - 1 + o.first_step), warmup = o.warmup_steps;
  const bool scaled = o.schedule == ScheduleKind::linear || o.schedule == ScheduleKind::constant;
  const double top = o.lr * (scaled ? o.initial_lr_fraction : 1.0);
  if (warmup > 0 && (o.first_step == 1 ? t <= warmup : t < warmup)) return top * t / warmup;
  const double end = o.schedule_steps > 0 ? o.schedule_steps : static_cast<double>(steps);
  const double span = o.first_step == 1 ? std::max(1.0, end - warmup) : end - warmup;
  const double p = span > 0 ? std::min(1.0, (t - warmup) / span) : 0.0;
  switch (o.schedule) {
    case ScheduleKind::linear:
      return o.lr * (o.initial_lr_fraction + p * (o.final_lr_fraction - o.initial_lr_fraction));
    case ScheduleKind::constant:
      return top;
    case ScheduleKind::inverse_sqrt: {
      const double cooldown = std::max(end - o.cooldown_steps, warmup);
      if (t < cooldown) return o.lr * inverse_sqrt_factor(o, t);
      const double from = inverse_sqrt_factor(o, cooldown);
      if (o.cooldown_steps <= 0) return o.lr * from;
      return o.lr * (from + std::min(1.0, (t - cooldown) / o.cooldown_steps) * (o.cooldown_lr_fraction - from));
    }
    case ScheduleKind::cosine:
      break;
  }
  return o.lr * (o.final_lr_fraction + (1 - o.final_lr_fraction) * 0.5 * (1 + std::cos(std::numbers::pi * p)));
}

}  // namespace wt
