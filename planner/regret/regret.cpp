#include "planner/regret/regret.hpp"

#include <algorithm>
#include <boost/math/distributions/normal.hpp>

namespace wt {
namespace {

double least_of(const std::vector<double>& steps_s) { return *std::ranges::min_element(steps_s); }

}  // namespace

double RegretTable::regret(std::size_t scenario, std::size_t layout) const {
  return steps_s[scenario][layout] / least_of(steps_s[scenario]) - 1;
}

std::size_t RegretTable::worst(std::size_t layout) const {
  std::size_t at = 0;
  for (std::size_t s = 1; s < steps_s.size(); ++s)
    if (regret(s, layout) > regret(at, layout)) at = s;
  return at;
}

std::size_t least_regret(const RegretTable& table, double tie,
                         const std::function<bool(std::size_t, std::size_t)>& better) {
  const std::size_t layouts = table.steps_s.front().size();
  std::size_t first = 0;
  for (std::size_t i = 1; i < layouts; ++i)
    if (table.largest(i) < table.largest(first)) first = i;
  std::size_t chosen = first;
  for (std::size_t i = 0; i < layouts; ++i)
    if (table.largest(i) <= table.largest(first) + tie && better(i, chosen)) chosen = i;
  return chosen;
}

ValueOfKnowing value_of_knowing(const std::vector<std::vector<double>>& steps_s, const std::vector<double>& probability,
                                std::size_t chosen, double tie, double given_up) {
  ValueOfKnowing out;
  for (std::size_t c = 0; c < steps_s.size(); ++c) {
    const double best_s = least_of(steps_s[c]), behind = steps_s[c][chosen] / best_s - 1;
    if (behind <= std::max(tie, given_up)) continue;
    out.changes += probability[c];
    out.saves_s += probability[c] * (behind - given_up) * best_s;
  }
  return out;
}

ValueOfKnowing value_of_knowing(const std::array<std::vector<double>, 3>& ends_and_middle_s, std::size_t chosen,
                                double tie, double given_up) {
  constexpr std::size_t kCases = 200;  // of equal probability: resolves `changes` to half a percent
  static const boost::math::normal kStandard;
  static const double kEnd = quantile(kStandard, 0.9);
  std::vector<std::vector<double>> steps_s;
  for (std::size_t i = 0; i < kCases; ++i) {
    const double z = quantile(kStandard, (static_cast<double>(i) + 0.5) / kCases);
    const double way = std::min(1.0, std::abs(z) / kEnd);
    const std::vector<double>&middle = ends_and_middle_s[1], &end = ends_and_middle_s[z < 0 ? 0 : 2];
    std::vector<double>& at = steps_s.emplace_back(middle);
    for (std::size_t l = 0; l < at.size(); ++l) at[l] += way * (end[l] - middle[l]);
  }
  return value_of_knowing(steps_s, std::vector<double>(kCases, 1.0 / kCases), chosen, tie, given_up);
}

}  // namespace wt
