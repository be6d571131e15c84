// Charts whose bars float: the ends of each bar are set here, so that a renderer only draws them.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "reports/model/report.hpp"

namespace wt {

/// From a start through signed changes to what is left: "ideal" 100, "checkpoints" -2.1, ..., "goodput" 93.4. The last
/// bar is start + sum of changes; it is the renderer's sum, so the caller need not repeat it.
Chart waterfall(std::string title, std::string unit, std::pair<std::string, double> start,
                const std::vector<std::pair<std::string, double>>& changes, std::string end_label);

/// One input of a sensitivity study: what comes out when the input stands at its low and at its high end.
struct Sensitivity {
  std::string input;  ///< "NIC bandwidth, 40 to 50 GB/s"
  double at_low = 0;
  double at_high = 0;
};

/// Widest swing first, around the plan's value.
Chart tornado(std::string title, std::string unit, ReferenceLine baseline, std::vector<Sensitivity> inputs);

}  // namespace wt
