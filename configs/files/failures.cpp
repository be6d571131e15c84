#include "configs/files/failures.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "configs/base/error.hpp"
#include "configs/base/lists.hpp"
#include "configs/base/number.hpp"
#include "configs/base/quantity.hpp"
#include "configs/base/yaml.hpp"
#include "configs/files/find.hpp"

namespace wt {
namespace {

constexpr double kMostFailures = 1e5;  // per 1000 node-days: each node fails a hundred times a day

Provenance read_provenance(YamlMap& map) {
  const std::string kind = map.choice("evidence", {"measured", "published", "derived", "assumed"});
  Provenance out{evidence_from_string(kind), map.text("source")};
  if (out.source.empty()) map.fail("source", "found nothing, needs a citation, a formula, or who assumed it and why");
  return out;
}

/// Reads which domain an event stops, and the distribution of the times between events.
void read_law(YamlMap& map, FailureClass& out) {
  using enum FaultDomain;
  const std::array domains{rank, node, rack, leaf, rail, all};
  const auto names = mapped(domains, [](FaultDomain domain) { return to_string(domain); });
  const std::string domain = map.choice("domain", names, to_string(node));
  out.domain = domains[static_cast<std::size_t>(std::ranges::find(names, domain) - names.begin())];
  out.shape = map.number_or("shape", 1, 0.1, 10);
  if (!map.has("bad_nodes")) return;
  if (out.domain != node) map.fail("bad_nodes", "found beside domain {}, needs domain node", domain);
  YamlMap bad = map.map("bad_nodes");
  out.bad = {bad.number("share", 0.0, 1.0), bad.number("factor", 1.0, 1e3)};
  bad.finish();
}

/// A class gives a rate, or a count over the file's node_days.
FailureClass read_class(YamlMap& map, double node_days) {
  FailureClass out;
  out.name = map.text("class");
  out.per_1000_node_days.evidence = read_provenance(map);
  if (map.has("count") == map.has("per_1000_node_days"))
    map.fail("count", "found {} of count and per_1000_node_days, needs exactly one",
             map.has("count") ? "both" : "neither");
  if (map.has("count")) {
    if (node_days <= 0) map.fail("count", "needs node_days at the top of the file to become a rate");
    out.count = map.integer("count", 0);
    out.per_1000_node_days.value = static_cast<double>(out.count) / node_days * 1000;
    if (out.per_1000_node_days.value > kMostFailures)
      map.fail("count", "found {} in {:g} node-days, needs at most {:g} a node and day", out.count, node_days,
               kMostFailures / 1000);
  } else {
    out.per_1000_node_days.value = map.number("per_1000_node_days", 0, kMostFailures);
  }
  return out;
}

std::vector<FailureClass> read_classes(YamlMap& map, const std::string& key, double node_days) {
  std::vector<FailureClass> out;
  if (!map.has(key)) return out;
  const bool planned = key == "planned";
  for (YamlMap& c : map.maps(key)) {
    out.push_back(read_class(c, node_days));
    if (planned && c.has("duration")) out.back().duration = read_sourced_time(c, "duration");
    if (!planned) read_law(c, out.back());
    c.finish();
  }
  return out;
}

StragglerRates read_stragglers(YamlMap map, double node_days) {
  StragglerRates out;
  out.onset = read_class(map, node_days);
  if (map.has("step_factor") == map.has("node_compute"))
    map.fail("step_factor", "found {} of step_factor and node_compute, needs exactly one",
             map.has("step_factor") ? "both" : "neither");
  const bool given = map.has("step_factor");
  YamlMap slow = map.map(given ? "step_factor" : "node_compute");
  SourcedNumber& number = given ? out.step_factor : out.node_compute;
  number.value = slow.number("value", given ? 1.0 : 1e-3, given ? 1e3 : 1.0);
  number.evidence = read_provenance(slow);
  slow.finish();
  out.duration_s = read_sourced_time(map, "duration");
  out.exchanged = map.choice("ends", {"recovers", "exchanged"}) == "exchanged";
  map.finish();
  return out;
}

/// Reads an optional section of a preset, for studies that need it. `name` is the study's key; "none" omits it.
template <typename T>
std::optional<T> section(const std::string& name_or_file, std::optional<T> FailurePreset::*member, const char* name,
                         const char* lacks, const char* example) {
  if (name_or_file == "none") return std::nullopt;
  FailurePreset preset = read_failures(name_or_file);
  if (!(preset.*member))
    throw_usage("{0}: found {1}, which {2}; needs a failure preset or file with a {0} section, such as {3}", name,
                name_or_file, lacks, example);
  return preset.*member;
}

double sum(const std::vector<FailureClass>& classes) {
  return sum_of(classes, [](const FailureClass& c) { return c.per_1000_node_days.value; });
}

SourcedNumber job_mean_s(const FailurePreset& preset, const std::vector<FailureClass>& classes, double rate,
                         std::int64_t nodes) {
  if (nodes < 1) throw_usage("failure preset {}: found {} nodes, needs at least 1", preset.name, nodes);
  SourcedNumber out;
  if (rate <= 0) return {0, {Evidence::published, preset.title + ": none reported"}};
  out.value = 1000 * kDay_s / (static_cast<double>(nodes) * rate);
  out.evidence = {Evidence::derived, fmt::format("1 / ({} nodes x {:.3g} per 1000 node-days); {} ({}): {}", nodes, rate,
                                                 preset.title, to_string(classes[0].per_1000_node_days.evidence.kind),
                                                 classes[0].per_1000_node_days.evidence.source)};
  return out;
}

}  // namespace

SourcedTime read_sourced_time(YamlMap& parent, const std::string& key) {
  YamlMap map = parent.map(key);
  SourcedTime out;
  out.value = map.quantity("time", parse_seconds);
  out.evidence = read_provenance(map);
  if (out.value < 0) map.fail("time", "needs a time >= 0");
  if (map.has("mean")) {
    out.median = out.value;
    out.value = map.quantity("mean", parse_seconds);
    if (!(out.median > 0 && out.value > out.median))
      map.fail("mean", "found a mean of {} and a median (time) of {}, needs a mean above the median and both above 0",
               map.text("mean"), map.text("time"));
  }
  map.finish();
  return out;
}

RecoveryTimes read_recovery_times(YamlMap& file) {
  YamlMap map = file.map("recovery");
  RecoveryTimes out;
  out.detect_s = read_sourced_time(map, "detect");
  out.reschedule_s = read_sourced_time(map, "reschedule");
  out.restart_s = read_sourced_time(map, "restart");
  out.reload_s = read_sourced_time(map, "reload");
  map.finish();
  return out;
}

double SourcedTime::sigma() const { return median > 0 ? std::sqrt(2 * std::log(value / median)) : 0; }

double FailurePreset::failures_per_1000_node_days() const { return sum(failures); }
double FailurePreset::planned_per_1000_node_days() const { return sum(planned); }

SourcedNumber FailurePreset::job_mtbf_s(std::int64_t nodes) const {
  return job_mean_s(*this, failures, failures_per_1000_node_days(), nodes);
}
SourcedNumber FailurePreset::planned_mtbs_s(std::int64_t nodes) const {
  return job_mean_s(*this, planned, planned_per_1000_node_days(), nodes);
}

SourcedTime FailurePreset::planned_duration_s() const {
  double sum = 0;
  std::vector<Provenance> from;
  for (const FailureClass& c : planned) {
    sum += c.per_1000_node_days.value * c.duration.value;
    if (c.duration.value > 0) from.push_back(c.duration.evidence);
  }
  if (from.empty()) return SourcedNumber{0, {Evidence::assumed, "no duration is given"}};
  return SourcedNumber{sum / planned_per_1000_node_days(), {weakest(from), to_string(from)}};
}

double FailureClass::job_mean_s(std::int64_t nodes) const {
  const double rate = per_1000_node_days.value;
  return rate > 0 ? 1000 * kDay_s / (static_cast<double>(nodes) * rate) : 0;
}

std::optional<StragglerRates> read_stragglers(const std::string& name_or_file) {
  return section(name_or_file, &FailurePreset::stragglers, "stragglers", "describes no slow nodes", "bloom");
}

std::optional<FailureClass> read_silent_errors(const std::string& name_or_file) {
  return section(name_or_file, &FailurePreset::silent_errors, "silent_errors", "gives no rate of them", "llama3");
}

FailurePreset read_failures(const std::string& name_or_file) {
  return read_failures_file(find_config("faults/rates", name_or_file));
}

FailurePreset read_failures_file(const std::filesystem::path& file) {
  YamlMap map = YamlMap::from_file(file);
  FailurePreset out;
  out.name = map.text("name");
  out.title = map.text("title");
  out.node_gpus = map.integer_or("node_gpus", 8, 1);
  constexpr double kMostNodeDays = 1e9;  // a hundred thousand nodes for 27 years
  const double node_days = map.number_or("node_days", 0, 0, kMostNodeDays);
  out.failures = read_classes(map, "failures", node_days);
  if (sum(out.failures) <= 0) map.fail("failures", "found no events, needs at least one class with a rate above 0");
  out.planned = read_classes(map, "planned", node_days);
  if (map.has("stragglers")) out.stragglers = read_stragglers(map.map("stragglers"), node_days);
  if (map.has("silent_errors")) {
    YamlMap silent = map.map("silent_errors");
    out.silent_errors = read_class(silent, node_days);
    silent.finish();
  }
  out.recovery = read_recovery_times(map);
  map.finish();
  return out;
}

}  // namespace wt
