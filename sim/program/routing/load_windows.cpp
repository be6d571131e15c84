#include "sim/program/routing/load_windows.hpp"

#include <algorithm>
#include <cstdint>

#include "configs/base/error.hpp"
#include "configs/files/find.hpp"
#include "sim/program/routing/named_routing.hpp"

namespace wt {
namespace {

/// Windows of `steps` steps, or of a power of two times as many if there would be more than kMostWindows. Steps after
/// the last whole window are left out. The cost depends on the number of recorded steps, not on their range.
LoadWindows windows_of(const std::string& file, std::int64_t steps, const ModelSpec& model) {
  const auto routing = recorded_routing(file, model, {1, 1, 1});
  const std::vector<std::int64_t> recorded = routing->recorded_steps();
  std::int64_t windows = (recorded.back() - recorded.front() + 1) / steps;
  LoadWindows out{{}, steps};
  for (; windows > static_cast<std::int64_t>(kMostWindows); windows /= 2) out.steps *= 2;
  for (std::int64_t i = 0; i < windows; ++i) {
    const std::int64_t begin = recorded.front() + i * out.steps, end = begin + out.steps;
    std::vector<std::int64_t> within(std::ranges::lower_bound(recorded, begin),
                                     std::ranges::lower_bound(recorded, end));
    if (within.empty()) within.push_back(begin);  // no recorded step: the nearest one counts
    out.loads.push_back(load_scenario(*routing, fmt::format("steps {} to {}", begin, end - 1), model.blocks(), 1,
                                      within, {Evidence::measured, file}));
  }
  return out;
}

/// Adds the shares of `b` to those of `a`, row by row.
void add_shares(LoadScenario& a, const LoadScenario& b, std::int64_t layers) {
  std::vector<std::vector<double>> sum;
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    sum.push_back(shares_of(a, layer));
    const std::vector<double> more = shares_of(b, layer);
    for (std::size_t e = 0; e < more.size(); ++e) sum.back()[e] += more[e];
  }
  a.counts = std::move(sum);
  a.name += " and " + b.name;
}

}  // namespace

LoadWindows read_load_windows(const std::vector<std::string>& names, std::int64_t steps, const ModelSpec& model) {
  if (model.experts == 0)
    throw_usage("drift: found loads of experts for model {}, which has none; drop the section", model.name);
  LoadWindows out{{}, steps};
  if (const std::string file = names.size() == 1 ? find_config("routing", names[0]).string() : "";
      !file.empty() && is_recording(file))
    out = windows_of(file, steps, model);
  else
    for (const std::string& name : names) out.loads.push_back(read_load_scenario(name, model.experts));
  if (out.loads.size() < 2)
    throw_usage(
        "drift: found {} of {} steps in {}, needs two windows at least: histograms in the order of time, or a "
        "recording of twice as many steps",
        out.loads.empty() ? "no window" : "one window", steps, names.empty() ? "an empty list" : names[0]);
  while (out.loads.size() > kMostWindows) {
    if (out.loads.size() % 2 == 1) {  // otherwise the last window would be half as long as the others
      out.loads.pop_back();
      continue;
    }
    for (std::size_t i = 0; i + 1 < out.loads.size(); ++i) {
      add_shares(out.loads[i], out.loads[i + 1], model.blocks());
      out.loads.erase(out.loads.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    }
    out.steps *= 2;
  }
  return out;
}

}  // namespace wt
