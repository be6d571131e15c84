// The measured runs that a predicted step is most like, in words and as a table.
#pragma once
#include <string>

#include "reports/model/report.hpp"
#include "sim/cost/stacks/measured_runs.hpp"

namespace wt {

/// The nearest published runs: measured and predicted rate, and how the step asked about differs.
Table relatives_table(const RunFeatures& asked);
/// " Beyond what was measured: 3072 GPUs, where runs like it had 1024 at most."; empty within.
std::string beyond_sentence(const RunFeatures& asked);

}  // namespace wt
