// When a loss, or the logarithm of a gradient norm, has risen above its level from before, and whether it came back.
//
// The level is the lowest median of the rule's `level` values, among the last `within` values before the rise. A
// series that falls takes its level with it; one that drifts up leaves it behind. The limit is as far above the level
// as the rule says, in nats and in robust standard deviations. Values above the limit never become part of a level,
// so that a series that stays up still stands out.
#pragma once
#include <cstddef>
#include <deque>
#include <limits>
#include <optional>
#include <vector>

#include "planner/watch/rules.hpp"

namespace wt {

/// After a value.
struct RiseState {
  double level = std::numeric_limits<double>::quiet_NaN();  ///< NaN: too few values
  double limit = std::numeric_limits<double>::infinity();   ///< infinite without a level
  std::optional<std::size_t> first = {};                    ///< value by which it rose; none: the last one is right
  bool stands = false;                                      ///< for the rule's steps in a row, and not back since
};

class RiseDetector {
 public:
  explicit RiseDetector(const SignalRule& rule) : rule_(rule) {}

  /// The next value [nats]. One that is not finite is always wrong. A rise has ended once the rule's steps in a row are
  /// below the middle between level and limit. Amortised O(`level`).
  const RiseState& add(double value);

 private:
  struct LevelWindow {
    std::size_t end = 0;
    double median = 0, deviation = 0;
  };
  void freeze_level();
  void take(double value);

  SignalRule rule_;
  std::size_t seen_ = 0;
  std::int64_t wrong_ = 0, right_ = 0;  ///< in a row
  std::deque<double> window_;           ///< the last values that were right
  std::deque<LevelWindow> lowest_;      ///< ascending medians, each of a later window than the one before
  std::optional<double> last_deviation_;
  RiseState state_;
};

}  // namespace wt
