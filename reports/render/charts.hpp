// Charts with floating bars: the ends of each bar are computed here, so that renderers only draw them.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "reports/model/report.hpp"

namespace wt {

/// From a start through signed changes to the rest: "ideal" 100, "checkpoints" -2.1, ..., "goodput" 93.4. The last bar
/// is computed: start + sum of changes.
Chart waterfall(std::string title, std::string unit, std::pair<std::string, double> start,
                const std::vector<std::pair<std::string, double>>& changes, std::string end_label);

/// One input of a sensitivity study, with the results at its low and its high end.
struct Sensitivity {
  std::string input;  ///< "NIC bandwidth, 40 to 50 GB/s"
  double at_low = 0;
  double at_high = 0;
};

/// Bars around the plan's value, the widest first.
Chart tornado(std::string title, std::string unit, ReferenceLine baseline, std::vector<Sensitivity> inputs);

/// A chart whose values are in seconds, in ms, us or ns if its largest value is below a second. Others stay.
Chart in_readable_unit(Chart chart);

}  // namespace wt
