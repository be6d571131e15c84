#include "planner/watch/rise_detector.hpp"

#include <algorithm>
#include <cmath>

#include "configs/base/statistics.hpp"
#include "configs/base/trend.hpp"

namespace wt {

/// The deviation is the larger one of the level's values and of the last ones: a quiet time is no measure of a loud
/// one.
void RiseDetector::freeze_level() {
  if (lowest_.empty()) return;
  const auto within = static_cast<std::size_t>(rule_.within);
  while (lowest_.size() > 1 && lowest_.front().end + within <= seen_) lowest_.pop_front();
  const LevelWindow& lowest = lowest_.front();
  state_.level = lowest.median;
  state_.limit =
      lowest.median + std::max(rule_.factor, rule_.deviations * std::max(lowest.deviation, *last_deviation_));
}

void RiseDetector::take(double value) {
  window_.push_back(value);
  if (std::ssize(window_) > rule_.level) window_.pop_front();
  if (std::ssize(window_) < rule_.level) return;
  const std::vector<double> values(window_.begin(), window_.end());
  const LevelWindow now{seen_, median(values), deviation_from_trend(values)};
  last_deviation_ = now.deviation;
  while (!lowest_.empty() && lowest_.back().median >= now.median) lowest_.pop_back();
  lowest_.push_back(now);
}

const RiseState& RiseDetector::add(double value) {
  if (!state_.first) freeze_level();
  if (!std::isfinite(value) || value > state_.limit) {
    ++wrong_, right_ = 0;
    if (!state_.first) state_.first = seen_;
    state_.stands = state_.stands || wrong_ >= rule_.steps;
  } else {
    wrong_ = 0;
    // Without a level any number is right.
    const bool back = !std::isfinite(state_.level) || value < (state_.level + state_.limit) / 2;
    right_ = back ? right_ + 1 : 0;
    if (!state_.stands || right_ >= rule_.steps) state_.first.reset(), state_.stands = false;
    if (!state_.stands) take(value);
  }
  ++seen_;
  return state_;
}

}  // namespace wt
