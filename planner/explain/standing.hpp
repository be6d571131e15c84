// Where a measured step stands among published runs of its family, each compared with its own prediction.
#pragma once
#include <cstddef>
#include <vector>

#include "sim/cost/stacks/measured_runs.hpp"

namespace wt {

struct Standing {
  std::size_t runs = 0;      ///< of the family
  double faster_than = 0;    ///< share of them that are slower, each against its own prediction
  double spread_within = 0;  ///< standard deviation of log(measured / predicted) of runs of one origin; 0 = unknown
};

/// `ratio`: measured over predicted step time. `measured`: published runs, each predicted without its origin.
Standing standing_of(double ratio, const RunFeatures& features, const std::vector<MeasuredRun>& measured);

}  // namespace wt
