// Choosing a layout when times are known only to an interval: the regret of each layout in each scenario (Savage
// 1951), and the value of knowing one time before choosing (the expected value of perfect information, Raiffa and
// Schlaifer 1961). Numbers only; robust_choice.hpp runs the simulations.
#pragma once
#include <array>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace wt {

/// Step times of the same layouts in each scenario. If the search minimises another objective: its values, scaled to
/// the best layout's step time.
struct RegretTable {
  /// "with all_gather between nodes at the slow end"; the first is "at predicted times".
  std::vector<std::string> scenarios;
  std::vector<std::vector<double>> steps_s;  ///< [scenario][layout]
  /// A layout's step time over that of the scenario's best layout, minus 1.
  double regret(std::size_t scenario, std::size_t layout) const;
  /// The scenario in which the layout has its largest regret; the first of equal ones.
  std::size_t worst(std::size_t layout) const;
  double largest(std::size_t layout) const { return regret(worst(layout), layout); }
};

/// The layout whose largest regret is smallest. Among those within `tie` of it, the one that `better` puts first.
std::size_t least_regret(const RegretTable& table, double tie,
                         const std::function<bool(std::size_t, std::size_t)>& better);

/// The value of knowing a time before choosing.
struct ValueOfKnowing {
  double changes = 0;  ///< probability that another layout is chosen
  double saves_s = 0;  ///< expected seconds per step
};

/// `steps_s` is [case][layout]; `probability` is that of each case. Another layout is chosen if `chosen` is slower than
/// the best by more than `tie` plus `given_up`, the loss that the choice already accepts. The slowdown beyond that is
/// saved.
ValueOfKnowing value_of_knowing(const std::vector<std::vector<double>>& steps_s, const std::vector<double>& probability,
                                std::size_t chosen, double tie, double given_up = 0);

/// The same for a time whose logarithm is normally distributed. `ends_and_middle_s`: step times at the low end of its
/// 80 % interval, the middle and the high end. Between these, steps are linear (in standard deviations); beyond the
/// ends they are constant.
ValueOfKnowing value_of_knowing(const std::array<std::vector<double>, 3>& ends_and_middle_s, std::size_t chosen,
                                double tie, double given_up = 0);

}  // namespace wt
