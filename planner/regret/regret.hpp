// Choosing under prices that are known to an interval: by how much each layout is behind the best, scenario by scenario
// (Savage 1951), and what it is worth to know one price before choosing (the expected value of perfect information,
// Raiffa and Schlaifer 1961). Numbers alone; robust_choice.hpp simulates them.
#pragma once
#include <array>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace wt {

/// Steps of the same layouts in each scenario; where the search makes something else smallest, that, in proportion to
/// the best layout's step.
struct RegretTable {
  std::vector<std::string> scenarios;        ///< "with all_gather between nodes at the slow end"; the first is central
  std::vector<std::vector<double>> steps_s;  ///< [scenario][layout]
  /// A layout's step over the best there, minus 1.
  double regret(std::size_t scenario, std::size_t layout) const;
  /// Where a layout's regret is the largest: the first of equal ones.
  std::size_t worst(std::size_t layout) const;
  double largest(std::size_t layout) const { return regret(worst(layout), layout); }
};

/// The layout whose largest regret is the smallest; of those within `tie` of it, the one that `better` puts first.
std::size_t least_regret(const RegretTable& table, double tie,
                         const std::function<bool(std::size_t, std::size_t)>& better);

/// Knowing a price before choosing.
struct Knowing {
  double changes = 0;  ///< how often another layout would be taken
  double saves_s = 0;  ///< expected, of a step
};

/// `steps_s` [case][layout] with the probability of each case. Another layout is taken where `chosen` is behind the
/// best by more than `tie`, and than `given_up`, which its choice accepts already; what it was behind beyond that is
/// saved.
Knowing knowing(const std::vector<std::vector<double>>& steps_s, const std::vector<double>& probability,
                std::size_t chosen, double tie, double given_up = 0);

/// The same of a price whose logarithm is normal: steps at the low end of its 80 % interval, in the middle and at the
/// high end, on lines in between (in standard deviations) and no further than the ends beyond them.
Knowing knowing(const std::array<std::vector<double>, 3>& ends_and_middle_s, std::size_t chosen, double tie,
                double given_up = 0);

}  // namespace wt
