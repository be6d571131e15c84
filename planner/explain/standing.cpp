#include "planner/explain/standing.hpp"

#include <cmath>
#include <map>
#include <string>

namespace wt {

Standing standing_of(double ratio, const RunFeatures& features, const std::vector<MeasuredRun>& measured) {
  Standing out;
  std::size_t slower = 0;
  std::map<std::string, std::vector<double>> by_origin;
  for (const MeasuredRun& run : measured) {
    if (run.features.family != features.family) continue;
    ++out.runs;
    if (run.ratio() > ratio) ++slower;
    by_origin[run.origin].push_back(std::log(run.ratio()));
  }
  if (out.runs > 0) out.faster_than = static_cast<double>(slower) / static_cast<double>(out.runs);
  double squares = 0, freedom = 0;
  for (const auto& [origin, logs] : by_origin) {
    double mean = 0;
    for (const double log : logs) mean += log / static_cast<double>(logs.size());
    for (const double log : logs) squares += (log - mean) * (log - mean);
    freedom += static_cast<double>(logs.size() - 1);
  }
  if (freedom > 0) out.spread_within = std::sqrt(squares / freedom);
  return out;
}

}  // namespace wt
