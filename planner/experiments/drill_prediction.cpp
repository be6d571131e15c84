#include "planner/experiments/drill_prediction.hpp"

#include <fmt/chrono.h>

#include <algorithm>
#include <ctime>
#include <utility>

#include "configs/base/error.hpp"
#include "configs/base/json_members.hpp"
#include "configs/base/statistics.hpp"
#include "configs/machine/fingerprint.hpp"
#include "trainer/run_folder/files.hpp"
#include "trainer/run_folder/run_lines.hpp"

namespace wt {

WT_TO_JSON(SimulatedFault, event, at_s, restarts, steps_lost, down_s, detect_s, start_s, load_s, replay_s, planned_s,
           slower_s)

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::size_t kWarmUpSteps = 3;

/// Whether the failed rank itself tells the others, which then end at once. Otherwise the agent waits for them.
bool is_told(const Scenario& scenario) {
  return std::ranges::any_of(scenario.events, [](const FaultEvent& e) {
    using enum FaultKind;
    return std::ranges::count(std::vector{exception, corrupt, disk_full, file_too_large, partition}, e.what.kind) > 0;
  });
}

bool has(const Scenario& scenario, FaultKind kind) {
  return std::ranges::any_of(scenario.events, [&](const FaultEvent& e) { return e.what.kind == kind; });
}

/// Whether an announced stop ends train, after a save.
bool is_announced(const Scenario& scenario) { return has(scenario, FaultKind::maintenance); }

/// Whether train itself ends, so that no rank is left to be stopped.
bool ends_the_agent(const Scenario& scenario) {
  return std::ranges::any_of(scenario.events, [](const FaultEvent& e) {
    return e.who.domain == FaultDomain::agent || e.who.domain == FaultDomain::store;
  });
}

/// Measured times of restarts, in seconds.
struct Phases {
  std::vector<double> exits, hangs, stop, stop_told, start, load, first_step, notice, relaunch;

  /// Adds a restart with the same number of ranks. Growing, waiting and continuing in place have other times.
  void add(const DrillRestart& r, const DrillInput& input) {
    if (!r.phases) return;
    const RecoveryPhases& p = *r.phases;
    if (r.relaunch) {
      relaunch.push_back(p.start_s);
      if (p.detect_s && is_announced(input.scenario)) notice.push_back(*p.detect_s);
      return;
    }
    if (r.blamed.empty() || (r.action != "restart" && !r.action.starts_with("spare"))) return;
    if (p.detect_s) (*p.detect_s < input.run.dist_timeout_s ? exits : hangs).push_back(*p.detect_s);
    (is_told(input.scenario) ? stop_told : stop).push_back(p.stop_s);
    start.push_back(p.start_s);
    load.push_back(p.load_s);
    first_step.push_back(p.first_step_s);
  }
};

double median_of(const std::vector<json>& lines, std::size_t from, double (*value)(const json&)) {
  std::vector<double> values;
  for (std::size_t i = std::min(from, lines.empty() ? 0 : lines.size() - 1); i < lines.size(); ++i)
    values.push_back(value(lines[i]));
  return values.empty() ? 0 : median(values);
}

SourcedTime measured_time(const std::vector<double>& samples, const char* what) {
  SourcedTime out;
  if (samples.empty()) {
    out.evidence = {Evidence::assumed, fmt::format("{}: the drill measured none", what)};
    return out;
  }
  double sum = 0;
  for (const double sample : samples) sum += sample;
  out.value = median(samples);
  if (const double mean = sum / static_cast<double>(samples.size()); out.value > 0 && mean > out.value * 1.01)
    out.median = std::exchange(out.value, mean);
  out.evidence = {Evidence::measured, fmt::format("{}, {} recoveries", what, samples.size())};
  return out;
}

MeasuredRecovery measured_recovery(const Phases& phases, bool told, const RunSpec& run, const fs::path& undisturbed) {
  MeasuredRecovery out;
  out.run = run.name;
  out.ranks = run.layout.world();
  const Fingerprint host = host_facts();
  out.title = fmt::format("windtunnel drill of {} on {} ranks and {} cores of {}, {:%Y-%m-%d}", run.name, out.ranks,
                          host.at("cores"), host.at("cpu_model"), fmt::gmtime(std::time(nullptr)));
  const auto saves = read_lines(undisturbed / kSavesFile);
  out.step_s = median_of(read_lines(undisturbed / kMetricsFile), kWarmUpSteps,
                         [](const json& row) { return row.at("step_s").get<double>(); });
  out.blocking_s = median_of(saves, 0, [](const json& row) { return row.at("blocking_s").get<double>(); });
  out.persist_s = median_of(saves, 0, [](const json& row) {
    return std::max(0.0, row.at("total_s").get<double>() - row.at("blocking_s").get<double>());
  });
  out.first_step_s = phases.first_step.empty() ? 0 : std::max(0.0, median(phases.first_step) - out.step_s);
  out.times.detect_s = phases.exits.empty() ? measured_time(phases.hangs, "from the stop of a process to the notice")
                                            : measured_time(phases.exits, "from the end of a process to the notice");
  std::vector<double> stops = phases.stop;
  if (told || stops.empty()) stops = phases.stop_told.empty() ? phases.stop : phases.stop_told;
  out.times.reschedule_s = measured_time(stops, "until all ranks are gone and the next action is decided");
  out.times.restart_s = measured_time(phases.start, "until the next ranks are connected");
  out.times.reload_s = measured_time(phases.load, "until the state is there");
  const auto median_or_none = [](const std::vector<double>& s) {
    return s.empty() ? std::nullopt : std::optional(median(s));
  };
  out.hang_detect_s = median_or_none(phases.hangs);
  out.notice_s = median_or_none(phases.notice);
  out.relaunch_s = median_or_none(phases.relaunch);
  return out;
}

double typical_s(const SourcedTime& time) { return time.median > 0 ? time.median : time.value; }

RunScenario months_of(const RunSpec& run, const MeasuredRecovery& m) {
  RunScenario out;
  out.steps = run.steps;
  out.step_s = m.step_s;
  out.interval_steps = run.save_interval > 0 ? run.save_interval : run.steps;
  out.blocking_s = m.blocking_s;
  out.persist_s = m.persist_s;
  out.detect_s = typical_s(m.times.detect_s);
  out.reschedule_s = typical_s(m.times.reschedule_s);
  out.restart_s = typical_s(m.times.restart_s);
  out.reload_s = typical_s(m.times.reload_s);
  out.startup_s = m.first_step_s;
  out.silent.verified = run.resilience.verify_interval > 0;
  out.tolerance.replicas = run.layout.replicate;
  out.tolerance.microbatches = run.microbatches();
  if (const std::int64_t copies = run.resilience.local.interval; copies > 0)
    out.local = {copies, m.blocking_s, out.reload_s, 1};
  return out;
}

/// Gradients are compared before use, and differing ones are computed again in place.
bool is_repeated(const FaultEvent& e, const RunSpec& run) {
  return e.what.kind == FaultKind::corrupt && e.what.tensor == TensorKind::gradient &&
         run.resilience.verify_interval > 0 && e.when.step % run.resilience.verify_interval == 0;
}

/// A background save that fails is noticed when the next save begins, so the failure is moved there and its own save is
/// lost. A failure of the last save ends the run.
void fail_save(FaultEvent& e, const RunSpec& run) {
  e.when.step += run.save_interval;
  if (e.when.step <= run.steps) return;
  e.when.step = run.steps;
  e.when.place = FaultTime::Place::checkpoint;
  e.what.kind = FaultKind::exit;
}

}  // namespace

SimulatedScenario simulate_drill(const DrillInput& input, const MeasuredRecovery& m) {
  if (m.run != input.run.name || m.ranks != input.run.layout.world())
    throw_usage("{}: found run {} on {} ranks, recoveries were measured of {} on {}", input.scenario.file.string(),
                input.run.name, input.run.layout.world(), m.run, m.ranks);
  const double hang_s = m.hang_detect_s.value_or(input.run.dist_timeout_s);
  Scenario scenario = input.scenario;
  std::erase_if(scenario.events, [&](const FaultEvent& e) {
    return is_repeated(e, input.run) || (e.what.kind == FaultKind::hang && e.lasts_s && *e.lasts_s < hang_s);
  });
  for (FaultEvent& e : scenario.events) {
    if (e.what.kind == FaultKind::disk_full || e.what.kind == FaultKind::file_too_large) fail_save(e, input.run);
    // Another rack has a copy.
    if (e.who.domain != FaultDomain::all && input.run.resilience.local.peer) e.what.takes_local_copies = false;
    if (e.what.kind == FaultKind::maintenance)  // simulated months add the save themselves
      e.lasts_s = std::max(0.0, m.notice_s.value_or(0) - m.blocking_s - m.persist_s);
    e.detected_within_s = e.what.kind == FaultKind::hang ? std::optional(hang_s) : std::nullopt;
  }
  RunScenario months = months_of(input.run, m);
  if (ends_the_agent(scenario)) months.reschedule_s = 0;
  if (ends_the_agent(scenario) || is_announced(scenario)) months.restart_s = m.relaunch_s.value_or(months.restart_s);
  return simulate_scenario(scenario, months, m.ranks);
}

double total_recovery_s(const std::vector<DrillRestart>& restarts) {
  double total = 0;
  std::optional<double> first_fault;  // another fault came before the first step
  for (const DrillRestart& r : restarts) {
    if (r.rejoins()) continue;
    const double from = first_fault.value_or(r.fault_unix_s.value_or(r.detected_unix_s));
    first_fault = r.phases ? std::nullopt : std::optional(from);
    if (r.phases) total += r.detected_unix_s - from + r.phases->recovery_s() + r.phases->replay_s;
  }
  return total;
}

RecoveryPhases phases_of(const SimulatedScenario& simulated) {
  RecoveryPhases out{.detect_s = 0};
  for (const SimulatedFault& s : simulated.faults) {
    if (s.restarts == 0) continue;
    *out.detect_s += s.detect_s + s.planned_s;
    out.stop_s += s.down_s - s.detect_s;
    out.start_s += s.start_s - s.warm_up_s;
    out.load_s += s.load_s;
    out.first_step_s += s.first_step_s + s.warm_up_s;
    out.replay_s += std::max(0.0, s.replay_s - s.under_way_s - s.first_step_s);
  }
  return out;
}

std::optional<RecoveryPhases> phases_of(const std::vector<DrillRestart>& restarts) {
  RecoveryPhases out{.detect_s = 0};
  for (const DrillRestart& r : restarts) {
    if (r.rejoins()) continue;
    if (!r.phases) return std::nullopt;
    *out.detect_s += r.phases->detect_s.value_or(0);
    out.stop_s += r.phases->stop_s;
    out.start_s += r.phases->start_s;
    out.load_s += r.phases->load_s;
    out.first_step_s += r.phases->first_step_s;
    out.replay_s += r.phases->replay_s;
  }
  return out;
}

double total_recovery_s(const SimulatedScenario& simulated) {
  const RecoveryPhases p = phases_of(simulated);
  return *p.detect_s + p.recovery_s() + p.replay_s;
}

json to_json(const SimulatedScenario& simulated) {
  json out = json::array();
  for (const SimulatedFault& s : simulated.faults)
    out.emplace_back(s).update({{"struck", s.took_effect}, {"total_s", s.total_s()}});
  return out;
}

void predict_recoveries(const std::vector<DrillInput>& inputs, const std::vector<fs::path>& undisturbed,
                        DrillResult& result) {
  const auto phases_of = [&](const fs::path& run, std::size_t without) {
    Phases out;
    for (std::size_t i = 0; i < inputs.size(); ++i)
      if (i != without && undisturbed[i] == run && result.cases[i].passed())
        for (const DrillRestart& r : result.cases[i].restarts) out.add(r, inputs[i]);
    return out;
  };
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    DrillCase& c = result.cases[i];
    if (std::find(undisturbed.begin(), undisturbed.begin() + static_cast<std::ptrdiff_t>(i), undisturbed[i]) ==
        undisturbed.begin() + static_cast<std::ptrdiff_t>(i))
      if (const Phases all = phases_of(undisturbed[i], inputs.size()); !all.exits.empty() || !all.hangs.empty())
        result.measured.push_back(measured_recovery(all, false, inputs[i].run, undisturbed[i]));
    const Phases others = phases_of(undisturbed[i], i);
    if (!c.passed() || c.restarts.empty() || !inputs[i].scenario.expect.finishes || others.start.empty()) continue;
    const bool told = is_told(inputs[i].scenario), hangs = has(inputs[i].scenario, FaultKind::hang);
    if (others.exits.empty() && !hangs) continue;  // the detection time of an exit was not measured
    try {
      c.predicted = simulate_drill(inputs[i], measured_recovery(others, told, inputs[i].run, undisturbed[i]));
    } catch (const Error& e) {
      if (e.code() != Code::usage) throw;  // simulated months do not know this event
    }
  }
}

}  // namespace wt
