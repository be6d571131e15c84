#include "planner/cli/profile/profile_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "bench/formats/rate.hpp"
#include "configs/base/error.hpp"
#include "configs/base/nearest.hpp"
#include "configs/base/statistics.hpp"
#include "configs/base/text.hpp"
#include "configs/machine/fingerprint.hpp"
#include "planner/cli/gate/gate_format.hpp"
#include "planner/cli/profile/profile_parts.hpp"

namespace wt {
namespace {

using namespace profile_parts;
using nlohmann::json;

constexpr std::size_t kFewSamples = 4;  // per side; with fewer the gate decides nothing
constexpr double kIdleCores = 0.1;      // busy cores of an idle system

std::string suite_of(const Measurement& m) {
  if (m.kernel.starts_with("trace/")) return "trace";
  if (m.kernel.starts_with("op:")) return "training";
  if (m.kernel.starts_with("checkpoint_")) return "storage";
  return m.shape.count("ranks") ? "collectives" : "kernels";
}

std::optional<double> error_of(const Measurement& m) {
  const auto found = m.counters.find("max_rel_error");
  return found == m.counters.end() ? std::nullopt : std::optional(found->second);
}

/// The largest number in "0 + 3", the result of merging 0 and 3.
double largest(const std::string& values) {
  double out = std::strtod(values.c_str(), nullptr);
  for (std::size_t at = 0; (at = values.find(" + ", at)) != std::string::npos; ++at)
    out = std::max(out, std::strtod(values.c_str() + at + 3, nullptr));
  return out;
}

std::string machine_of(const Profile& profile) {
  const std::string device = fact(profile, "device"), cpu = fact(profile, "cpu_model");
  if (device.empty() || device == "cpu") return cpu.empty() ? "an unnamed machine" : cpu;
  return device;
}

Cell short_error(const std::optional<double>& error) {
  return error ? Cell(*error, fmt::format("{:.1e}", *error)) : Cell("-");
}

std::vector<Callout> warnings(const Profile& profile) {
  std::vector<Callout> out;
  for (const FailedMeasurement& f : profile.failures) out.push_back({Status::bad, "failed", f.name + ": " + f.error});
  std::map<std::string, std::size_t> throttled;
  std::size_t unchecked = 0, few = 0, guessed = 0;
  for (const Measurement& m : profile.measurements) {
    if (!m.throttled.empty()) ++throttled[fmt::format("{}", fmt::join(m.throttled, ", "))];
    const bool measured = m.evidence.kind == Evidence::measured || m.evidence.kind == Evidence::derived;
    few += measured && m.samples.size() < kFewSamples ? 1 : 0;
    unchecked += measured && !error_of(m) ? 1 : 0;
    guessed += measured ? 0 : 1;
  }
  for (const auto& [reasons, count] : throttled)
    out.push_back({Status::bad, "throttled: " + reasons,
                   fmt::format("{} on a device that was slowed down; the gate does not compare them",
                               counted(count, "measurement"))});
  if (const std::string why = fact(profile, "run.nvml"); !why.empty())
    out.push_back({Status::warn, "NVML", why + "; throttling would not be seen"});
  if (const std::string events = fact(profile, "run.clock_events"); events.find("not readable") != std::string::npos)
    out.push_back(
        {Status::warn, "clock events", "the driver did not tell why clocks were low: throttling would not be seen"});
  if (const double others = largest(fact(profile, "run.other_gpu_processes")); others > 0)
    out.push_back(
        {Status::warn, "other processes", fmt::format("{:.0f} on the device beside the one that measured", others)});
  for (const auto& [key, what] : {std::pair{"run.other_busy_cores", "kept busy by other processes"},
                                  std::pair{"run.stolen_cores", "taken by the hypervisor"}})
    if (const double cores = largest(fact(profile, key)); cores > kIdleCores)
      out.push_back(
          {Status::warn, "other load", fmt::format("{:.2f} cores were {} while this was measured", cores, what)});
  for (const auto& [key, what] :
       {std::pair{"run.ecc_uncorrected_volatile", "uncorrected"}, std::pair{"run.ecc_corrected_volatile", "corrected"}})
    if (const double errors = largest(fact(profile, key)); errors > 0)
      out.push_back(
          {Status::warn, "ECC", fmt::format("{} memory errors since the driver was loaded: {:.0f}", what, errors)});
  if (few > 0)
    out.push_back(
        {Status::warn, "few samples",
         fmt::format("{} of fewer than {} samples, too few for a spread", counted(few, "measurement"), kFewSamples)});
  if (unchecked > 0)
    out.push_back({Status::none, "no correctness error",
                   fmt::format("{} not compared with a reference", counted(unchecked, "measurement"))});
  if (guessed > 0)
    out.push_back(
        {Status::none, "not measured here", fmt::format("{} published or assumed", counted(guessed, "measurement"))});
  if (fact(profile, "commit").find("-dirty") != std::string::npos)
    out.push_back({Status::none, "commit", "the tree had changes that are in no commit"});
  return out;
}

/// Measurements by row of the overview.
using Groups = std::map<std::vector<std::string>, std::vector<const Measurement*>>;

Table overview(const Profile& profile) {
  Groups groups;
  for (const Measurement& m : profile.measurements)
    groups[{suite_of(m), group_of(m), m.pass, m.dtype, m.clock}].push_back(&m);
  Table table{.title = "By kernel",
              .columns = {"suite", "kernel", "pass", "type", "clock", numeric("shapes"), numeric("samples"),
                          numeric("medians"), numeric("spread", "%"), numeric("best rate"), numeric("largest error")}};
  bool estimated = false;
  for (const auto& [key, group] : groups) {
    std::vector<double> medians, spreads;
    std::optional<double> error;
    std::optional<Rate> best;
    std::size_t samples = 0, slowed = 0;
    for (const Measurement* m : group) {
      medians.push_back(m->median()), samples += m->samples.size();
      if (m->samples.size() > 1) spreads.push_back(spread(*m));
      slowed += m->throttled.empty() ? 0 : 1;
      if (const auto own = error_of(*m)) error = std::max(error.value_or(0), *own);
      if (const auto own = rate(*m); own && (!best || own->value > best->value)) best = own;
    }
    estimated |= best && best->estimated;
    const auto [low, high] = std::minmax_element(medians.begin(), medians.end());
    const std::string unit = group.front()->unit;
    std::string range = gate_value(*low, unit);
    if (*high > *low) range += " to " + gate_value(*high, unit);
    table.rows.push_back(
        {key[0], slowed > 0 ? Cell(fmt::format("{} ({} throttled)", key[1], slowed), Status::bad) : Cell(key[1]),
         key[2], key[3], key[4], whole(group.size()), whole(samples), range,
         spreads.empty() ? Cell("-") : percent(median(spreads)), best ? Cell(best->value, to_string(*best)) : Cell("-"),
         short_error(error)});
  }
  table.note =
      "Spread: half the range of the middle 80 % of the samples over their median; of several shapes the median. "
      "Largest error: of a result over the largest value of its fp64 reference.";
  if (estimated) table.note += " " + std::string(kEstimatedRates);
  return table;
}

Table one_by_one(const Profile& profile, const std::string& kernel) {
  Table table{.title = kernel,
              .columns = {"measurement", numeric("samples"), numeric("median"), numeric("spread", "%"), numeric("rate"),
                          numeric("error"), "throttled"}};
  std::vector<std::string> names;
  bool estimated = false;
  for (const Measurement& m : profile.measurements) {
    if (std::ranges::find(names, m.kernel) == names.end()) names.push_back(m.kernel);
    if (m.kernel != kernel && group_of(m) != kernel) continue;
    const auto own = rate(m);
    estimated |= own && own->estimated;
    table.rows.push_back(
        {m.name(), whole(m.samples.size()), Cell(m.median(), gate_value(m.median(), m.unit)),
         m.samples.size() > 1 ? percent(spread(m)) : Cell("-"), own ? Cell(own->value, to_string(*own)) : Cell("-"),
         short_error(error_of(m)),
         m.throttled.empty() ? Cell("-") : Cell(fmt::format("{}", fmt::join(m.throttled, ", ")), Status::bad)});
  }
  if (table.rows.empty())
    throw_usage("profile show: found no measurement of '{}'{}; allowed are the kernels of the overview", kernel,
                did_you_mean(kernel, names));
  if (estimated) table.note = kEstimatedRates;
  return table;
}

KeyValues facts(const Profile& profile, const std::string& title, bool of_run) {
  KeyValues out{.title = title};
  for (const auto& [key, value] : profile.fingerprint)
    if (is_run_fact(key) == of_run) out.entries.emplace_back(key, value);
  return out;
}

json measurement_json(const Measurement& m) {
  const auto own = rate(m);
  const auto error = error_of(m);
  return {{"name", m.name()},
          {"suite", suite_of(m)},
          {"samples", m.samples.size()},
          {"median", m.median()},
          {"unit", m.unit},
          {"spread", spread(m)},
          {"rate", own ? json(own->value) : json()},
          {"rate_unit", own ? json(own->unit) : json()},
          {"rate_estimated", own && own->estimated},
          {"max_rel_error", error ? json(*error) : json()},
          {"throttled", m.throttled}};
}

}  // namespace

Report profile_report(const Profile& profile, const std::string& kernel) {
  Report report{.title = "Profile"};
  std::set<std::string> kernels, suites;
  std::size_t samples = 0;
  json list = json::array(), warned = json::array();
  for (const Measurement& m : profile.measurements) {
    kernels.insert(group_of(m)), suites.insert(suite_of(m)), samples += m.samples.size();
    list.push_back(measurement_json(m));
  }
  const std::string date = fact(profile, "date");
  report.answer = fmt::format("{} of {} on {}{}.", counted(profile.measurements.size(), "measurement"),
                              counted(kernels.size(), "kernel"), machine_of(profile), date.empty() ? "" : ", " + date);
  report.answer_range = fmt::format("{}; suites: {}", counted(samples, "sample"), fmt::join(suites, ", "));
  const std::vector<Callout> found = warnings(profile);
  for (const Callout& each : found) {
    report.status = std::max(report.status, each.status);
    warned.push_back({{"status", to_string(each.status)}, {"what", each.title}, {"text", each.text}});
  }
  if (!found.empty()) report.sections.push_back({"warnings", "What to know", {}, {found.begin(), found.end()}});
  report.sections.push_back({"machine",
                             "Where it was measured",
                             {},
                             {facts(profile, "Machine and software", false), facts(profile, "This run", true)}});
  report.sections.push_back({"measurements", "What was measured", {}, {overview(profile)}});
  if (!kernel.empty()) report.sections.push_back({"kernel", "One by one", {}, {one_by_one(profile, kernel)}});
  report.payload = {{"fingerprint", profile.fingerprint}, {"warnings", warned}, {"measurements", list}};
  return report;
}

}  // namespace wt
