#include "planner/watch/rules.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "configs/base/enum_words.hpp"
#include "configs/base/quantity.hpp"
#include "configs/base/yaml.hpp"
#include "configs/files/find.hpp"

namespace wt {
namespace {

const std::vector<std::string> kMetrics{"mfu", "tokens_per_s", "step_s", "memory", "loss", "grad_norm", "silence"};
const std::vector<std::string> kReferences{"value", "best", "recent", "before", "plan"};
constexpr std::int64_t kMostSteps = 10'000;
constexpr std::int64_t kFewestOfLevel = 4;  // a deviation of fewer values says little

template <typename Enum>
Enum word_of(YamlMap& map, const std::string& key, const std::vector<std::string>& words) {
  return *enumerator_of<Enum>(map.choice(key, words), words);
}

double time_above_0(YamlMap& map, const std::string& key) {
  const double seconds = map.quantity(key, parse_seconds);
  if (!(seconds > 0)) map.fail(key, fmt::format("found {}, needs a time above 0", format_seconds(seconds)));
  return seconds;
}

/// Loss and gradients are compared with their level before they rose: a multiple of a loss means nothing.
std::vector<WatchReference> references_of(WatchedMetric metric) {
  using enum WatchReference;
  if (is_loss_metric(metric)) return {before, value};
  if (metric == WatchedMetric::silence) return {recent, value};
  if (metric == WatchedMetric::memory) return {best, recent, value};
  return {best, recent, plan, value};
}

void check_reference(YamlMap& map, const SignalRule& rule) {
  const std::vector<WatchReference> allowed = references_of(rule.metric);
  if (std::ranges::count(allowed, rule.of) > 0) return;
  std::vector<std::string> words;
  for (const WatchReference each : allowed) words.push_back(to_string(each));
  map.fail("of", fmt::format("found '{}' for {}, allowed {}", to_string(rule.of), to_string(rule.metric),
                             fmt::join(words, ", ")));
}

void read_level(YamlMap& map, SignalRule& rule) {
  if (!rule.above) map.fail("below", "found for of: before, needs above: nats above the level");
  rule.deviations = map.number("deviations", 1e-12);
  rule.level = map.integer("level", kFewestOfLevel, kMostSteps);
  rule.within = map.integer("within", 1, 1'000'000);
}

SignalRule read_rule(YamlMap map) {
  SignalRule out{.name = map.text("name"), .metric = word_of<WatchedMetric>(map, "metric", kMetrics)};
  if (map.has("above") == map.has("below"))
    map.fail("above",
             fmt::format("found {} of above and below, needs exactly one", map.has("above") ? "both" : "neither"));
  out.above = map.has("above");
  out.factor = map.number(out.above ? "above" : "below", 1e-12);
  out.of = word_of<WatchReference>(map, "of", kReferences);
  check_reference(map, out);
  if (out.of == WatchReference::before) read_level(map, out);
  if (out.metric == WatchedMetric::silence) {
    if (!out.above) map.fail("below", "found for silence, needs above: a run is silent for too long");
    out.least_s = time_above_0(map, "at_least");
  } else {
    out.steps = map.integer("steps", 1, kMostSteps);
  }
  map.finish();
  return out;
}

/// `skip: least` skips one batch, which tells the trainer how far to go back.
RollbackRule read_rollback(YamlMap map) {
  RollbackRule out{.margin = map.integer("margin", 1, kMostSteps)};
  out.skip.reset();
  if (const std::string skip = map.text("skip"); skip != "least") {
    if (skip.empty() || skip.find_first_not_of("0123456789") != std::string::npos)
      map.fail("skip", fmt::format("found '{}', needs a number of batches such as 200, or least", skip));
    out.skip = map.integer("skip", 1, kMostSteps);
  }
  map.finish();
  return out;
}

std::vector<SignalRule> read_signals(YamlMap& map) {
  std::vector<SignalRule> out;
  std::set<std::string> names;
  for (YamlMap& each : map.maps("signals")) {
    out.push_back(read_rule(each));
    if (!names.insert(out.back().name).second)
      map.fail("signals", fmt::format("found two of the name '{}', needs names of their own", out.back().name));
  }
  if (out.empty()) map.fail("signals", "found none, needs at least one");
  return out;
}

}  // namespace

std::string to_string(WatchedMetric metric) { return kMetrics[static_cast<std::size_t>(metric)]; }
bool is_loss_metric(WatchedMetric metric) {
  return metric == WatchedMetric::loss || metric == WatchedMetric::grad_norm;
}
std::optional<WatchedMetric> metric_from(const std::string& word) {
  return enumerator_of<WatchedMetric>(word, kMetrics);
}
std::string to_string(WatchReference reference) { return kReferences[static_cast<std::size_t>(reference)]; }

WatchRules read_watch_rules(const std::string& name_or_file) {
  YamlMap map = YamlMap::from_file(find_config("watch", name_or_file));
  WatchRules out;
  out.every_s = time_above_0(map, "every");
  out.window = map.integer("window", 2, kMostSteps);
  out.signals = read_signals(map);
  out.sweep_undecided = map.choice("undecided", {"tell", "sweep"}) == "sweep";
  out.sure = map.number("sure", 0.5, 1);
  out.most_excluded = map.number("most_excluded", 0, 1);
  out.restarts = map.integer("restarts", 1, 1000);
  out.rollback = read_rollback(map.map("rollback"));
  YamlMap verify = map.map("verify");
  out.verify_steps = verify.integer("steps", 1, kMostSteps);
  out.verify_s = time_above_0(verify, "within");
  verify.finish();
  map.finish();
  return out;
}

}  // namespace wt
