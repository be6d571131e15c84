#include "sim/validate/judge_collectives.hpp"

#include <fmt/core.h>

#include <map>
#include <optional>
#include <utility>

#include "configs/base/error.hpp"
#include "configs/base/lists.hpp"
#include "configs/base/statistics.hpp"
#include "sim/cost/collectives/collective_estimator.hpp"
#include "sim/fit/collective_fit.hpp"
#include "sim/fit/collective_rows_as_points.hpp"
#include "sim/fit/row_exchange_fit.hpp"

namespace wt {
namespace {

using Problem = std::pair<CollectiveForm, bool>;

Problem problem_of(const CollectivePoint& p) { return {form_of(p.kind), p.group.nodes > 1}; }

std::string name_of(const CollectiveRow& row) {
  const std::string ranks = row.gpus % row.nodes == 0 ? fmt::format("{}x{}", row.nodes, row.gpus / row.nodes)
                                                      : fmt::format("{} on {}", row.gpus, row.nodes);
  return fmt::format("{} {} {} {} {:.0f} B", row.gpu, ranks, row.interconnect.fabric, row.collective, row.bytes);
}

std::string regime_of(const CollectiveRow& row) {
  if (!row.unusable.empty()) return "unusable rows";
  if (!row.kind) return row.collective;
  if (row.domains() > 1 && row.shared_with_other_jobs) return "fabric shared with other jobs";
  return fmt::format("{}, {}, {} 64 MiB", *row.kind == OpKind::send ? "sendrecv" : to_string(form_of(*row.kind)),
                     row.domains() > 1 ? "many nodes" : "one node", row.bytes < kSmallMessage ? "<" : ">=");
}

/// The estimator without a group, and the typical share of the nominal link rate for the baseline.
class Others {
 public:
  Others(std::vector<CollectivePoint> points, LeftOut left_out)
      : points_(std::move(points)), all_(points_), left_out_(left_out) {}

  const std::string& group_of(const CollectivePoint& p) const {
    return left_out_ == LeftOut::origin ? p.origin : p.cluster;
  }
  const CollectiveEstimator& without(const std::string& group) {
    const auto found = without_.find(group);
    return found != without_.end()
               ? found->second
               : without_.emplace(group, CollectiveEstimator(all_.without(group).constants())).first->second;
  }
  double typical_share(const CollectivePoint& of) {
    const auto [found, fresh] = shares_.try_emplace({group_of(of), problem_of(of)}, 0.0);
    if (!fresh) return found->second;
    std::vector<double> shares;
    for (const CollectivePoint& p : points_)
      if (p.unusable.empty() && p.kind != OpKind::send && group_of(p) != group_of(of) &&
          problem_of(p) == problem_of(of))
        shares.push_back(link_load(p.question()).transfer_s / p.seconds);
    return found->second = quantile(shares, 0.5);
  }

 private:
  std::vector<CollectivePoint> points_;
  CollectiveFit all_;
  LeftOut left_out_;
  std::map<std::string, CollectiveEstimator> without_;
  std::map<std::pair<std::string, Problem>, double> shares_;
};

Judged judge(const CollectiveRow& row, Others& others) {
  const CollectivePoint p = point_of(row);
  Judged j;
  j.line = row.line;
  j.group = others.group_of(p);
  j.origin = p.origin;
  j.name = name_of(row);
  j.measured = row.seconds;
  j.regime = regime_of(row);
  j.forecast.reason = j.baseline.reason = p.unusable;
  if (!p.unusable.empty()) return j;
  const CollectiveQuestion question = p.question();
  const CollectiveEstimator& estimator = others.without(j.group);
  j.forecast.reason = j.baseline.reason = estimator.blind_spot(question);
  if (!j.forecast.reason.empty()) return j;
  if (!estimator.knows_link(question)) j.regime += ", link never measured";
  const CollectiveEstimate estimate = estimator.estimate(question);
  const double seconds = estimator.seconds(question, p.python);
  j.forecast.value = seconds;
  j.forecast.low = seconds * (1 - estimate.relative_spread);
  j.forecast.high = seconds * (1 + estimate.relative_spread);
  j.baseline.value = link_load(question).transfer_s / others.typical_share(p);
  j.forecast.evidence = j.baseline.evidence = only(row.bytes_assumed ? Evidence::assumed : estimate.evidence);
  return j;
}

/// The fit to the other groups' rows of dispatches, and the median rate among these.
struct OtherDispatches {
  RowExchangeFit fit;
  double typical_Bps;

  explicit OtherDispatches(const std::vector<RowExchangeRow>& rows)
      : fit(rows),
        typical_Bps(quantile(mapped(rows, [](const auto& row) { return row.nic_bytes() / row.seconds; }), 0.5)) {}
};

}  // namespace

std::vector<Judged> judge_row_exchanges(const std::vector<RowExchangeRow>& rows,
                                        const std::vector<RowExchangeRow>& reference, LeftOut left_out) {
  const auto group_of = [&](const RowExchangeRow& row) {
    return left_out == LeftOut::origin ? row.origin : row.setup();
  };
  std::map<std::string, std::optional<OtherDispatches>> without;
  const auto others = [&](const std::string& group) -> const std::optional<OtherDispatches>& {
    const auto [found, fresh] = without.try_emplace(group);
    if (!fresh) return found->second;
    std::vector<RowExchangeRow> rest;
    for (const RowExchangeRow& row : reference)
      if (row.unusable.empty() && row.seconds > 0 && group_of(row) != group) rest.push_back(row);
    if (!rest.empty()) found->second.emplace(rest);
    return found->second;
  };
  const auto judged = [&](const RowExchangeRow& row) {
    Judged j;
    j.line = row.line;
    j.group = group_of(row);
    j.origin = row.origin;
    j.name = fmt::format("{} {} nodes {} {} {} {:.0f} tokens of {:.0f} B", row.gpu, row.nodes, row.transport,
                         row.library, row.operation, row.tokens, row.row_bytes);
    j.measured = row.seconds;
    j.regime = row.unusable.empty() ? row.operation : "unusable rows";
    j.forecast.reason = !row.unusable.empty() ? row.unusable
                        : !(row.seconds > 0)  ? "a rate without tokens and time"
                        : !others(j.group)    ? "no measurement of others"
                                              : "";
    j.baseline.reason = j.forecast.reason;
    if (!j.forecast.reason.empty()) return j;
    const OtherDispatches& known = *others(j.group);
    if (!known.fit.knows_library(row)) j.regime += ", library never measured";
    j.forecast.value = known.fit.seconds(row);
    j.baseline.value = row.nic_bytes() / known.typical_Bps;
    j.forecast.evidence = j.baseline.evidence = only(Evidence::derived);
    return j;
  };
  std::vector<Judged> out = mapped(rows, judged);
  add_intervals(out, &Judged::forecast);
  add_intervals(out, &Judged::baseline);
  return out;
}

std::vector<Judged> judge_collectives(const std::vector<CollectiveRow>& rows,
                                      const std::vector<CollectiveRow>& reference, LeftOut left_out) {
  Others others(points_of(reference), left_out);
  std::vector<Judged> judged;
  judged.reserve(rows.size());
  for (const CollectiveRow& row : rows) judged.push_back(judge(row, others));
  add_intervals(judged, &Judged::baseline);
  return judged;
}

}  // namespace wt
