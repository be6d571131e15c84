#include "sim/validate/collectives.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <optional>
#include <regex>
#include <set>
#include <utility>

#include "sim/cost/collectives/collective_fit.hpp"
#include "sim/cost/fit/fit.hpp"
#include "sim/measurements/fabric.hpp"

namespace wt {
namespace {

constexpr std::size_t kFewestRows = 3;  // three constants

/// Who measured: a talk by its number, a repository without the file in it, else the first words.
std::string origin(const std::string& source) {
  static const std::regex talk(R"(S\d{5})"), repository(R"([\w.-]+/[\w.-]+)");
  std::smatch found;
  if (std::regex_search(source, found, talk) || std::regex_search(source, found, repository)) return found[0];
  return source.substr(0, source.find(' '));
}

std::string identity(const CollectiveSample& s) {
  return fmt::format("{}|{}|{}|{}|{}|{}|{}|{}", s.row->source, s.row->gpu, s.row->gpus, s.row->fabric,
                     s.row->collective, s.row->bytes, s.row->seconds, s.row->note);
}

class CollectivePredictor {
 public:
  explicit CollectivePredictor(std::vector<CollectiveSample> training) : training_(std::move(training)) {}

  Judged judge(const CollectiveSample& s) {
    Judged j;
    j.line = s.row->line;
    j.group = s.group;
    const std::string ranks = s.row->gpus % s.row->nodes == 0
                                  ? fmt::format("{}x{}", s.row->nodes, s.row->gpus / s.row->nodes)
                                  : fmt::format("{} on {}", s.row->gpus, s.row->nodes);
    j.name = fmt::format("{} {} {} {} {:.0f} B", s.row->gpu, ranks, s.row->fabric, s.row->collective, s.row->bytes);
    j.measured = s.row->seconds;
    if (!s.row->unusable.empty())
      j.regime = "unusable rows";
    else if (s.kind.empty())
      j.regime = s.row->collective;
    else if (s.many() && s.link == kSharedFabric)
      j.regime = "fabric shared with other jobs";
    else
      j.regime = (s.send() ? "sendrecv" + s.problem().substr(s.kind.size()) : s.problem()) +
                 (s.row->bytes < kSmallMessage ? ", < 64 MiB" : ", >= 64 MiB");
    if (s.reason.empty())
      j.forecast.reason = blind(s);
    else
      j.forecast.reason = s.reason;
    j.baseline.reason = j.forecast.reason;
    if (!j.forecast.reason.empty()) return j;

    const Left& left = without(s);
    const bool known = left.fit->knows_link(s.link);
    if (!known) j.regime += ", link never measured";
    j.forecast.value = left.fit->seconds(s);
    j.baseline.value = s.transfer_s / left.typical_share;
    EvidenceShares evidence =
        only(known && s.row->collective != "broadcast" && !s.send() ? Evidence::published : Evidence::derived);
    if (s.row->bytes_assumed) evidence = only(Evidence::assumed);
    j.forecast.evidence = j.baseline.evidence = evidence;
    return j;
  }

 private:
  struct Left {
    std::optional<CollectiveFit> fit;
    double typical_share = 0;
  };

  /// Why the other groups say nothing of this one; empty where they do.
  std::string blind(const CollectiveSample& s) const {
    std::size_t rows = 0;
    bool small = false;
    for (const CollectiveSample& each : training_) {
      if (each.group == s.group || each.problem() != s.problem()) continue;
      ++rows;
      small |= each.transport == s.transport && each.row->bytes < kSmallMessage;  // one node: no transport
    }
    if (rows < kFewestRows)
      return fmt::format("fewer than {} measurements of {} on other clusters", kFewestRows, s.problem());
    if (s.row->bytes < kSmallMessage && !small)
      return fmt::format("no other cluster {} measured below 64 MiB: latencies do not carry over",
                         s.many() ? "over " + s.transport : "of one node");
    return "";
  }

  const Left& without(const CollectiveSample& s) {
    Left& left = fits_[{s.problem(), s.group}];
    if (left.fit) return left;
    std::vector<const CollectiveSample*> samples;
    std::vector<double> shares;
    for (const CollectiveSample& each : training_)
      if (each.group != s.group && each.problem() == s.problem()) {
        samples.push_back(&each);
        shares.push_back(each.transfer_s / each.row->seconds);
      }
    left.fit.emplace(samples);
    left.typical_share = quantile(shares, 0.5);
    return left;
  }

  std::vector<CollectiveSample> training_;
  std::map<std::pair<std::string, std::string>, Left> fits_;
};

}  // namespace

std::vector<Judged> judge_collectives(const std::vector<CollectiveRow>& rows,
                                      const std::vector<CollectiveRow>& reference, LeftOut left_out) {
  std::vector<CollectiveSample> samples, training;
  std::set<std::string> seen;
  const auto train_on = [&](const CollectiveSample& s) {
    // Sends are predicted by what gathers say, not the other way round: too few are published to tell them apart.
    if (s.reason.empty() && !s.send() && seen.insert(identity(s)).second) training.push_back(s);
  };
  const auto sample = [&](const CollectiveRow& row) {
    CollectiveSample s = collective_sample(row);
    if (left_out == LeftOut::source) s.group = origin(row.source);
    return s;
  };
  for (const CollectiveRow& row : rows) samples.push_back(sample(row));
  for (const CollectiveSample& s : samples) train_on(s);
  const std::size_t own = training.size();
  for (const CollectiveRow& row : reference) train_on(sample(row));
  CollectivePredictor predictor(training);

  std::vector<Judged> judged;
  for (const CollectiveSample& s : samples) judged.push_back(predictor.judge(s));
  for (std::size_t i = own; i < training.size(); ++i)
    judged.push_back(predictor.judge(training[i]));  // for the intervals
  add_intervals(judged, &Judged::forecast);
  add_intervals(judged, &Judged::baseline);
  judged.resize(samples.size());
  return judged;
}

}  // namespace wt
