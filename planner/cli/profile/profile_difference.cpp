// The report of `windtunnel profile diff`.
#include <algorithm>
#include <cmath>
#include <set>

#include "bench/formats/rate.hpp"
#include "bench/gate/rank_tests.hpp"
#include "configs/base/text.hpp"
#include "configs/machine/fingerprint.hpp"
#include "planner/cli/gate/gate_format.hpp"
#include "planner/cli/profile/profile_parts.hpp"
#include "planner/cli/profile/profile_report.hpp"

namespace wt {
namespace {

using namespace profile_parts;
using nlohmann::json;

struct Pair {
  const Measurement *a, *b;
  std::optional<double> ratio;  ///< of the medians
  std::optional<RatioInterval> interval;
  bool apart() const { return interval && (interval->low > 1 || interval->high < 1); }
  /// Whether the medians differ by no more than both spreads together.
  bool within_spreads() const {
    return std::abs(a->median() - b->median()) <= spread(*a) * a->median() + spread(*b) * b->median();
  }
};

Pair paired(const Measurement& a, const Measurement& b) {
  Pair out{&a, &b, {}, {}};
  if (a.unit != b.unit) return out;
  if (a.median() > 0 && b.median() > 0) out.ratio = b.median() / a.median();
  if (out.ratio) out.interval = ratio_interval(a.samples, b.samples);
  return out;
}

Cell change(double ratio) { return {ratio, gate_change(ratio)}; }
std::string shown(const std::optional<RatioInterval>& i) {
  return i ? fmt::format("[{}, {}]", gate_change(i->low), gate_change(i->high)) : "-";
}

double geometric_mean(const std::vector<double>& ratios) {
  double sum = 0;
  for (double ratio : ratios) sum += std::log(ratio);
  return std::exp(sum / static_cast<double>(ratios.size()));
}

Table kernels_table(const std::vector<Pair>& pairs) {
  Table table{.title = "By kernel",
              .columns = {"kernel", numeric("pairs"), numeric("b over a"), numeric("least"), numeric("most"),
                          numeric("apart"), numeric("within spreads")}};
  struct Group {
    std::vector<double> ratios;
    std::size_t apart = 0, within = 0;
  };
  std::map<std::string, Group> groups;
  for (const Pair& pair : pairs)
    if (pair.ratio) {
      Group& group = groups[group_of(*pair.a)];
      group.ratios.push_back(*pair.ratio), group.apart += pair.apart() ? 1 : 0,
          group.within += pair.within_spreads() ? 1 : 0;
    }
  for (const auto& [kernel, group] : groups) {
    const auto [low, high] = std::minmax_element(group.ratios.begin(), group.ratios.end());
    table.rows.push_back({kernel, whole(group.ratios.size()), change(geometric_mean(group.ratios)), change(*low),
                          change(*high), whole(group.apart), whole(group.within)});
  }
  table.note =
      "b over a: geometric mean over shapes of the ratio of medians, as a change. Apart: pairs whose 95 % interval of "
      "the ratio leaves 1 out. Within spreads: pairs whose medians differ by no more than the sum of their spreads "
      "(profile show).";
  return table;
}

Table pairs_table(std::vector<Pair> pairs) {
  std::erase_if(pairs, [](const Pair& pair) { return !pair.apart(); });
  std::ranges::sort(
      pairs, [](const Pair& x, const Pair& y) { return std::abs(std::log(*x.ratio)) > std::abs(std::log(*y.ratio)); });
  Table table{.title = "Apart, farthest first",
              .columns = {"measurement", numeric("a"), numeric("b"), numeric("change"), numeric("95 % interval"),
                          numeric("samples")}};
  const auto time = [](const Measurement& m) {
    return Cell(m.median(), gate_value(m.median(), m.unit) + (m.throttled.empty() ? "" : " (throttled)"), {},
                m.throttled.empty() ? Status::none : Status::bad);
  };
  for (const Pair& p : pairs)
    table.rows.push_back({p.b->name(), time(*p.a), time(*p.b), change(*p.ratio), shown(p.interval),
                          fmt::format("{}/{}", p.a->samples.size(), p.b->samples.size())});
  return table;
}

}  // namespace

Report difference_report(const Profile& a, const Profile& b) {
  std::map<std::string, const Measurement*> of_a;
  for (const Measurement& m : a.measurements) of_a[m.name()] = &m;
  std::vector<Pair> pairs;
  std::vector<double> ratios;
  std::size_t apart = 0, within = 0;
  json list = json::array(), only_a = json::array(), only_b = json::array(), differing = json::array();
  for (const Measurement& m : b.measurements) {
    const auto found = of_a.find(m.name());
    if (found == of_a.end()) {
      only_b.push_back(m.name());
      continue;
    }
    const Pair pair = paired(*found->second, m);
    of_a.erase(found);
    pairs.push_back(pair);
    if (pair.ratio) ratios.push_back(*pair.ratio), within += pair.within_spreads() ? 1 : 0;
    apart += pair.apart() ? 1 : 0;
    list.push_back({{"name", m.name()},
                    {"a_median", pair.a->median()},
                    {"b_median", m.median()},
                    {"a_unit", pair.a->unit},
                    {"b_unit", m.unit},
                    {"ratio", pair.ratio ? json(*pair.ratio) : json()},
                    {"ratio_low", pair.interval ? json(pair.interval->low) : json()},
                    {"ratio_high", pair.interval ? json(pair.interval->high) : json()}});
  }
  for (const auto& [name, m] : of_a) only_a.push_back(name);

  Report report;
  report.title = "Two profiles";
  report.answer = ratios.empty() ? "The two profiles have no measurement in common."
                                 : fmt::format(
                                       "Over {} in common b is {} against a (geometric mean of the medians' ratios); "
                                       "{} apart by their 95 % intervals; {:.1f} % within the sum of their spreads.",
                                       counted(ratios.size(), "measurement"), gate_change(geometric_mean(ratios)),
                                       apart, 100 * static_cast<double>(within) / static_cast<double>(ratios.size()));
  report.answer_range = fmt::format("only in a: {}; only in b: {}; a look, no verdict: windtunnel gate judges",
                                    only_a.size(), only_b.size());
  std::set<std::string> keys;
  for (const Profile* profile : {&a, &b})
    for (const auto& [key, value] : profile->fingerprint) keys.insert(key);
  Table facts{.title = "Facts that differ", .columns = {"fact", "of", "a", "b"}};
  for (const bool of_run : {false, true})
    for (const std::string& key : keys) {
      const std::string left = fact(a, key), right = fact(b, key);
      if (is_run_fact(key) != of_run || left == right) continue;
      facts.rows.push_back(
          {key, of_run ? "the run" : "machine or software", left.empty() ? "-" : left, right.empty() ? "-" : right});
      differing.push_back({{"fact", key}, {"run", of_run}, {"a", left}, {"b", right}});
    }
  if (!facts.rows.empty()) report.sections.push_back({"facts", "Where they were measured", {}, {facts}});
  if (!ratios.empty()) report.sections.push_back({"kernels", "How they compare", {}, {kernels_table(pairs)}});
  if (apart > 0) report.sections.back().items.push_back(pairs_table(pairs));
  report.payload = {
      {"facts", differing},       {"pairs", list},
      {"only_a", only_a},         {"only_b", only_b},
      {"within_spreads", within}, {"geometric_mean_ratio", ratios.empty() ? json() : json(geometric_mean(ratios))}};
  return report;
}

}  // namespace wt
