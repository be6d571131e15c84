// Drifting expert loads: consecutive windows of training.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "sim/program/routing/load_scenario.hpp"

namespace wt {

struct LoadWindows {
  std::vector<LoadScenario> loads;  ///< in the order of time
  std::int64_t steps = 0;           ///< of each window
};

inline constexpr std::size_t kMostWindows = 16;  ///< each one costs some simulated steps

/// Histograms in the order of time, each of `steps` steps; or one recording (routing.csv of a training run), split into
/// windows of that many steps. More than kMostWindows are merged to fewer, longer ones. Throws Error{usage}: fewer than
/// two windows, a model without experts.
LoadWindows read_load_windows(const std::vector<std::string>& names, std::int64_t steps, const ModelSpec& model);

}  // namespace wt
