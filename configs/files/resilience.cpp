#include "configs/files/resilience.hpp"

#include <algorithm>

#include "configs/base/parsed.hpp"
#include "configs/base/yaml.hpp"

namespace wt {
namespace {

std::int64_t read_interval(YamlMap& map, const std::string& key, const RunClock& clock) {
  const std::int64_t steps = read_batches(map, key, clock);
  if (steps < 1) map.fail(key, "found 0ba, needs at least 1ba; leave the key out for none");
  return steps;
}

LocalCheckpointSpec read_local(YamlMap map, const RunClock& clock) {
  LocalCheckpointSpec local;
  local.interval = read_interval(map, "interval", clock);
  local.folder = map.text("folder", "");
  local.peer = map.boolean("peer", local.peer);
  local.keep = map.integer_or("keep", local.keep, 2);  // another rank may lack its part of the newest
  map.finish();
  return local;
}

/// "120" or "120-180".
BatchRange read_range(YamlMap& map, const std::string& text, std::size_t entry) {
  const std::size_t dash = text.find('-');
  const auto first = parsed<std::int64_t>(text.substr(0, dash));
  const auto last = dash == std::string::npos ? first : parsed<std::int64_t>(text.substr(dash + 1));
  if (!first || !last || *first < 1 || *last < *first)
    map.fail_entry("skip_batches", entry, "found '{}', needs a batch such as 120 or a range such as 120-180", text);
  return {*first, *last};
}

std::vector<BatchRange> read_skipped(YamlMap& map) {
  std::vector<BatchRange> out;
  for (const std::string& text : map.texts("skip_batches")) {
    const BatchRange range = read_range(map, text, out.size());
    if (!out.empty() && range.first <= out.back().last)
      map.fail_entry("skip_batches", out.size(), "found {} after {}, needs ascending batches", range.first,
                     out.back().last);
    out.push_back(range);
  }
  return out;
}

}  // namespace

bool ResilienceSpec::skips(std::int64_t batch) const {
  return std::ranges::any_of(skipped, [&](const BatchRange& r) { return r.holds(batch); });
}

ResilienceSpec read_resilience(YamlMap& map, const RunClock& clock) {
  ResilienceSpec spec;
  if (map.has("local_checkpoints")) spec.local = read_local(map.map("local_checkpoints"), clock);
  spec.verify_saves = map.boolean("verify_saves", spec.verify_saves);
  if (map.has("verify_interval")) spec.verify_interval = read_interval(map, "verify_interval", clock);
  spec.skipped = read_skipped(map);
  spec.grace_period_s = map.number_or("grace_period", spec.grace_period_s, 1);
  return spec;
}

void resilience_to_yaml(const ResilienceSpec& spec, YAML::Emitter& out) {
  const ResilienceSpec usual;
  const auto key = [&](const char* name) -> YAML::Emitter& { return out << YAML::Key << name << YAML::Value; };
  if (spec.local.interval > 0) {
    key("local_checkpoints") << YAML::BeginMap;
    key("interval") << fmt::format("{}ba", spec.local.interval);
    if (!spec.local.folder.empty()) key("folder") << spec.local.folder.string();
    key("peer") << spec.local.peer;
    key("keep") << spec.local.keep << YAML::EndMap;
  }
  if (spec.verify_saves != usual.verify_saves) key("verify_saves") << spec.verify_saves;
  if (spec.verify_interval > 0) key("verify_interval") << fmt::format("{}ba", spec.verify_interval);
  if (!spec.skipped.empty()) {
    key("skip_batches") << YAML::Flow << YAML::BeginSeq;
    for (const auto& [first, last] : spec.skipped)
      out << (first == last ? std::to_string(first) : fmt::format("{}-{}", first, last));
    out << YAML::EndSeq;
  }
  if (spec.grace_period_s != usual.grace_period_s) key("grace_period") << fmt::format("{}", spec.grace_period_s);
}

}  // namespace wt
