#include "sim/fit/collective_fit.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "sim/cost/collectives/collective_estimator.hpp"
#include "sim/fit/link_fit.hpp"

namespace wt {
namespace {

constexpr double kLeastSpread = 0.05;         // smallest half width of an interval, relative to the time
constexpr std::size_t kFewestResiduals = 10;  // residuals needed for spreads of their own for small and for large
                                              // messages

std::vector<TimedLoad> timed(const std::vector<CollectivePoint>& points) {
  std::vector<TimedLoad> out;
  out.reserve(points.size());
  for (const CollectivePoint& p : points) out.push_back(timed(p));
  return out;
}

/// 80th percentile of errors with the same weight for each origin: a hundred rows of one cluster tell no more about the
/// next cluster than ten rows do.
double spread_of(const std::vector<std::pair<double, std::string>>& errors) {
  std::map<std::string, double> rows;
  for (const auto& [error, origin] : errors) ++rows[origin];
  std::vector<std::pair<double, double>> weighted;
  for (const auto& [error, origin] : errors) weighted.emplace_back(error, 1 / rows[origin]);
  std::ranges::sort(weighted);
  double below = 0;
  for (const auto& [error, weight] : weighted)
    if ((below += weight) >= 0.8 * static_cast<double>(rows.size())) return std::max(kLeastSpread, error);
  return 0.5;
}

}  // namespace

CollectiveFit::CollectiveFit(std::vector<CollectivePoint> points) {
  std::map<Form, std::vector<CollectivePoint>> forms;
  for (CollectivePoint& p : points)
    // Sends are predicted from constants of gathers: too few sends are published for constants of their own.
    if (p.unusable.empty() && p.kind != OpKind::send)
      forms[{form_of(p.kind), p.group.nodes > 1}].push_back(std::move(p));
  for (auto& [form, of_form] : forms) forms_.emplace(form, fit(form, std::move(of_form)));
}

CollectiveFit::Fitted CollectiveFit::fit(const Form& form, std::vector<CollectivePoint> points) {
  const std::vector<TimedLoad> times = timed(points);
  Fitted out{{form.first, form.second, fit_links(times), {}, points.size(), {}}, std::move(points)};
  // Error on a machine that nobody measured: each origin's points are predicted from the others. Links that no other
  // origin measured are apart: estimates over them have wider intervals of their own.
  std::map<std::string, std::vector<std::size_t>> origins;
  for (std::size_t i = 0; i < out.points.size(); ++i) origins[out.points[i].origin].push_back(i);
  std::array<std::vector<std::pair<double, std::string>>, 2> errors;
  std::vector<std::pair<double, std::string>> all;
  for (const auto& [origin, members] : origins) {
    std::vector<TimedLoad> rest;
    for (std::size_t i = 0; i < times.size(); ++i)
      if (out.points[i].origin != origin) rest.push_back(times[i]);
    if (rest.empty()) continue;
    const LinkConstants without = fit_links(rest, &out.constants.links);
    for (const std::size_t i : members) {
      const TimedLoad& t = times[i];
      if (!without.knows_link(t.load.link)) continue;
      const double guess = without.seconds(t.load, without.constants(t.load.link, t.fabric), t.python);
      all.emplace_back(std::abs(t.seconds / guess - 1), origin);
      errors[out.points[i].bytes < kSmallMessage ? 0 : 1].push_back(all.back());
    }
  }
  for (std::size_t i = 0; i < 2; ++i)
    out.constants.spread[i] = spread_of(errors[i].size() < kFewestResiduals ? all : errors[i]);
  for (const CollectivePoint& p : out.points)
    if (p.bytes < kSmallMessage) out.constants.small_transports.insert(p.machine.transport);
  return out;
}

CollectiveConstants CollectiveFit::constants() const {
  CollectiveConstants out;
  for (const auto& [form, fitted] : forms_) {
    out.forms.push_back(fitted.constants);
    if (!form.second) continue;
    for (const CollectivePoint& p : fitted.points) {
      double& largest = out.largest_bytes[p.machine.fabric];
      largest = std::max(largest, p.bytes);
      if (p.machine.transport == kSharedTransport) out.link_of[p.machine.fabric] = kSharedTransport;
    }
  }
  return out;
}

CollectiveFit CollectiveFit::without(const std::string& group) const {
  CollectiveFit out;
  for (const auto& [form, fitted] : forms_) {
    std::vector<CollectivePoint> rest;
    for (const CollectivePoint& p : fitted.points)
      if (p.cluster != group && p.origin != group) rest.push_back(p);
    if (rest.size() == fitted.points.size())
      out.forms_.emplace(form, fitted);
    else if (!rest.empty())
      out.forms_.emplace(form, fit(form, std::move(rest)));
  }
  return out;
}

}  // namespace wt
