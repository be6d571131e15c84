#include "planner/cli/compare/proof_report.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "configs/base/number.hpp"
#include "configs/base/statistics.hpp"
#include "planner/cli/parts/cells.hpp"
#include "planner/experiments/drill_prediction.hpp"
#include "reports/render/timeline_chart.hpp"

namespace wt {
namespace {

Cell judged_percent(double share, double bar) {
  return {100 * share, fmt::format("{:+.1f} %", 100 * share), {}, std::abs(share) <= bar ? Status::good : Status::bad};
}

double highest_peak(const std::vector<RankFigures>& ranks) {
  double peak = 0;
  for (const RankFigures& rank : ranks) peak = std::max(peak, rank.peak_bytes);
  return peak;
}

Cell seconds(double s) { return {s, fmt::format("{:.2f}", s)}; }

Cell equal(bool same) { return same ? Cell("equal", Status::good) : Cell("differs", Status::bad); }

}  // namespace

Table comparison_table(const std::vector<RunComparison>& comparisons) {
  Table t{.title = "Run by run",
          .columns = {"run", numeric("step predicted", "ms"), numeric("measured", "ms"), numeric(""),
                      numeric("exposed predicted", "ms"), numeric("measured", "ms"), numeric("", "of step"),
                      numeric("peak predicted", "MiB"), numeric("measured", "MiB"), numeric("")}};
  const auto number = [](double value) { return Cell(value, fmt::format("{:.1f}", value)); };
  for (const RunComparison& c : comparisons)
    t.rows.push_back({fmt::format("{}, {}{}", c.name, c.layout, c.calibrated_on ? " (calibrated on)" : ""),
                      number(1e3 * c.predicted_step_s()), number(1e3 * c.measured_step_s()),
                      judged_percent(c.step_error(), kStepErrorBar), number(1e3 * mean_exposed_s(c.predicted)),
                      number(1e3 * mean_exposed_s(c.measured)), judged_percent(c.exposed_error(), kExposedErrorBar),
                      number(highest_peak(c.predicted) / kMiB_bytes), number(highest_peak(c.measured) / kMiB_bytes),
                      judged_percent(c.peak_error(), kPeakErrorBar)});
  t.note = fmt::format(
      "Measured: medians over the steps after 3 of warm-up ({} steps). Exposed communication: mean over ranks of the "
      "time the compute lane stood still for a collective. Routing: each run's own recording. Bars for runs not "
      "calibrated on: step {:.0f} %, exposed {:.0f} % of the step, peak {:.0f} %.",
      comparisons.empty() ? 0 : comparisons.front().measured_steps, 100 * kStepErrorBar, 100 * kExposedErrorBar,
      100 * kPeakErrorBar);
  return t;
}

std::string disturbance(const std::vector<RunComparison>& comparisons) {
  double worst = 0;
  for (const RunComparison& c : comparisons) worst = std::max(worst, c.cores_used_by_others);
  if (worst < 0.1) return "";
  return fmt::format(" (other programs kept up to {:.1f} cores busy meanwhile, which the prediction does not know)",
                     worst);
}

std::string error_sentence(const std::vector<RunComparison>& unseen) {
  if (unseen.empty()) return "every run was part of the calibration, so that none says how far a prediction is off";
  double step = 0, exposed = 0, peak = 0;
  for (const RunComparison& c : unseen) {
    step = std::max(step, std::abs(c.step_error()));
    exposed = std::max(exposed, std::abs(c.exposed_error()));
    peak = std::max(peak, std::abs(c.peak_error()));
  }
  return fmt::format(
      "on {} {} it had not seen, step time was off by at most {:.1f} %, exposed communication by {:.1f} % of the step, "
      "peak tensor memory by {:.2f} %",
      unseen.size(), unseen.size() == 1 ? "run" : "runs", 100 * step, 100 * exposed, 100 * peak);
}

Section comparison_section(const std::vector<RunComparison>& comparisons) {
  Section s{"predicted-measured", "Predicted against measured", {}, {}};
  std::vector<RunComparison> unseen;
  std::ranges::copy_if(comparisons, std::back_inserter(unseen), [](const auto& c) { return !c.calibrated_on; });
  s.paragraphs.push_back(
      "The machine model was calibrated on one run of the real trainer and on kernel and collective benchmarks of this "
      "machine; routing is each run's own recording (an input); " +
      error_sentence(unseen) + disturbance(comparisons) + ".");
  Chart chart{.kind = ChartKind::grouped_bar, .title = "Step time", .unit = "ms", .value_axis = "step time"};
  Series predicted{.name = "predicted", .evidence = Evidence::derived},
      measured{.name = "measured", .evidence = Evidence::measured};
  for (const RunComparison& c : comparisons) {
    chart.labels.push_back(c.name + (c.calibrated_on ? " (calibrated on)" : ""));
    predicted.values.push_back(1e3 * c.predicted_step_s());
    predicted.low.push_back(1e3 * std::min(c.predicted_low_s, c.predicted_step_s()));
    predicted.high.push_back(1e3 * std::max(c.predicted_high_s, c.predicted_step_s()));
    measured.values.push_back(1e3 * c.measured_step_s());
  }
  chart.series = {predicted, measured};
  s.items = {chart, comparison_table(comparisons)};
  return s;
}

Section timeline_section(const RunComparison& c) {
  const auto first_ranks = [](std::vector<StepTimeline> all) {
    all.resize(std::min<std::size_t>(all.size(), 2));
    return all;
  };
  Section s{"timeline", "Timeline of a step", {}, {}};
  s.paragraphs.push_back(
      fmt::format("One step of {} ({}), ranks 0 and 1, predicted above measured. {}", c.name, c.layout,
                  c.same_ops ? "Both timelines carry the same op ids in the same order on every rank."
                             : "The op ids differ: the simulator and the trainer did not run the same program."));
  s.items.push_back(timeline_chart("Lanes of ranks 0 and 1", {{"predicted", first_ranks(c.predicted_timelines)},
                                                              {"measured", first_ranks(c.measured_timelines)}}));
  return s;
}

Section rank_memory_section(const std::vector<RunComparison>& comparisons) {
  Section s{"rank-memory", "Memory per rank, predicted against measured", {}, {}};
  s.paragraphs.push_back(
      "Peak tensor memory: predicted by replaying the step program's allocations, measured by counting in the "
      "trainer's allocator.");
  Chart chart{.kind = ChartKind::grouped_bar, .title = "Peak tensor memory", .unit = "MiB", .value_axis = "peak"};
  Series predicted{.name = "predicted", .evidence = Evidence::derived},
      measured{.name = "measured", .evidence = Evidence::measured};
  for (const RunComparison& c : comparisons)
    for (std::size_t r = 0; r < c.measured.size(); ++r) {
      chart.labels.push_back(fmt::format("{} rank {}", c.name, r));
      predicted.values.push_back(c.predicted[r].peak_bytes / kMiB_bytes);
      measured.values.push_back(c.measured[r].peak_bytes / kMiB_bytes);
    }
  chart.series = {predicted, measured};
  s.items.push_back(chart);
  return s;
}

Table drill_table(const DrillResult& result) {
  Table t{.title = "Recovery drill",
          .columns = {"scenario", "fault", "blamed", "resumed after", numeric("lost", "steps"), "losses", "parameters",
                      "optimizer", "samples", "verdict"}};
  for (const DrillCase& c : result.cases) {
    std::string struck, named, resumed;
    const auto add = [](std::string& list, const std::string& word) { list += (list.empty() ? "" : "; ") + word; };
    const auto state = [&](bool same) {
      return same || c.compared == Expectation::State::bitwise ? equal(same) : Cell("not compared");
    };
    const auto numbers = [&](bool same) {
      return c.compared != Expectation::State::changed ? state(same) : Cell(same ? "equal" : "changed");
    };
    if (!c.proofs.empty()) struck = c.proofs.front();
    if (c.proofs.size() > 1) struck += fmt::format(" and {} more", c.proofs.size() - 1);
    for (const DrillRestart& r : c.restarts) {
      add(named, r.rank < 0
                     ? "train: " + r.cause
                     : fmt::format("rank{} {}: {}", r.blamed.size() > 1 ? "s" : "", fmt::join(r.blamed, " "), r.cause));
      add(resumed, r.resumed_after < 0 ? "no step" : fmt::format("step {}", r.resumed_after));
    }
    t.rows.push_back(
        {c.name, struck.empty() ? Cell("nothing", Status::bad) : Cell(struck), named.empty() ? "nobody" : named,
         resumed.empty() ? "no restart" : resumed, whole(c.steps_lost),
         c.compared == Expectation::State::layouts && c.losses_equal ? Cell("close") : state(c.losses_equal),
         numbers(c.parameters_equal), numbers(c.optimizer_equal), equal(c.samples_equal),
         c.passed() ? Cell("passed", Status::good) : Cell("FAILED", Status::bad)});
  }
  t.note = "Compared bit by bit with the undisturbed run.";
  if (std::ranges::any_of(result.cases, [](const DrillCase& c) { return c.compared == Expectation::State::layouts; }))
    t.note += " Close: as losses of different layouts are.";
  return t;
}

Table recovery_table(const DrillResult& result) {
  Table t;
  t.title = "Phases of each recovery, measured";
  t.columns = {"scenario",           numeric("detect", "s"),     numeric("stop", "s"),   numeric("start", "s"),
               numeric("load", "s"), numeric("first step", "s"), numeric("replay", "s"), numeric("recovery", "s")};
  for (const DrillCase& c : result.cases)
    for (const DrillRestart& r : c.restarts) {
      if (!r.phases) continue;
      const RecoveryPhases& p = *r.phases;
      t.rows.push_back({c.name, p.detect_s ? seconds(*p.detect_s) : Cell("none"), seconds(p.stop_s), seconds(p.start_s),
                        seconds(p.load_s), seconds(p.first_step_s), seconds(p.replay_s), seconds(p.recovery_s())});
    }
  t.note =
      "Detect: from the fault to the agent's notice. Stop: until all ranks are gone. Start: until the next ranks are "
      "connected. Recovery: from the notice to the end of the first step.";
  return t;
}

Table drawn_table(const std::vector<DrillInput>& inputs, const DrillResult& result) {
  struct Count {
    std::int64_t events = 0, scenarios = 0, failed = 0;
  };
  std::map<std::string, Count> kinds;
  std::int64_t faults = 0, restarts = 0, lost = 0;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const DrillCase& c = result.cases[i];
    std::set<std::string> own;
    for (const FaultEvent& e : inputs[i].scenario.events)
      own.insert(to_string(e.what.kind)), ++kinds[to_string(e.what.kind)].events;
    for (const std::string& kind : own) ++kinds[kind].scenarios, kinds[kind].failed += !c.passed();
    faults += static_cast<std::int64_t>(c.proofs.size());
    restarts += static_cast<std::int64_t>(c.restarts.size());
    lost += c.steps_lost;
  }
  Table t{.title = "Drawn scenarios by kind of fault",
          .columns = {"kind", numeric("events"), numeric("scenarios"), numeric("failed")}};
  for (const auto& [kind, n] : kinds) t.rows.push_back({kind, whole(n.events), whole(n.scenarios), whole(n.failed)});
  t.note =
      fmt::format("{} scenarios, {} faults, {} restarts, {} steps done again.", inputs.size(), faults, restarts, lost);
  return t;
}

Table predicted_recovery_table(const DrillResult& result) {
  Table t{.title = "Predicted and measured",
          .columns = {"scenario", numeric("restarts"), numeric("predicted"), numeric("lost", "steps"),
                      numeric("predicted"), numeric("total", "s"), numeric("predicted", "s"), numeric("off")}};
  std::vector<double> off;
  for (const DrillCase& c : result.cases) {
    if (!c.predicted) continue;
    std::int64_t restarts = 0, lost = 0;
    for (const SimulatedFault& fault : c.predicted->faults) restarts += fault.restarts, lost += fault.steps_lost;
    const double measured_s = total_recovery_s(c.restarts), predicted_s = total_recovery_s(*c.predicted);
    if (measured_s > 0) off.push_back(predicted_s / measured_s - 1);
    const auto measured = std::ranges::count_if(c.restarts, [](const DrillRestart& r) { return !r.takes_back(); });
    t.rows.push_back({c.name, whole(measured), whole(restarts), whole(c.steps_lost), whole(lost), seconds(measured_s),
                      seconds(predicted_s),
                      measured_s > 0 ? judged_percent(off.back(), kRecoveryErrorBar) : Cell("none")});
  }
  for (double& each : off) each = std::abs(each);
  t.note =
      "Total: from the fault until all lost steps are done again, at least one step. Predicted: simulated months of "
      "the same file, by the medians of the other scenarios of the run.";
  if (!off.empty())
    t.note += fmt::format(" Off by {:.0f} % in the median, by at most {:.0f} %; {} of {} within {:.0f} %.",
                          100 * median(off), 100 * *std::ranges::max_element(off),
                          std::ranges::count_if(off, [](double each) { return each <= kRecoveryErrorBar; }), off.size(),
                          100 * kRecoveryErrorBar);
  return t;
}

Table predicted_phases_table(const DrillResult& result) {
  Table t{.title = "Phases, predicted and measured", .columns = {"scenario"}};
  for (const char* phase : {"detect", "stop", "start", "load", "redo"}) {
    t.columns.push_back(numeric(phase, "s"));
    t.columns.push_back(numeric("predicted"));
  }
  for (const DrillCase& c : result.cases) {
    const auto measured = phases_of(c.restarts);
    if (!c.predicted || !measured) continue;
    const RecoveryPhases predicted = phases_of(*c.predicted);
    std::vector<Cell> row{c.name};
    const auto add = [&](const auto& of) {
      row.push_back(seconds(of(*measured)));
      row.push_back(seconds(of(predicted)));
    };
    add([](const RecoveryPhases& p) { return p.detect_s.value_or(0); });
    add([](const RecoveryPhases& p) { return p.stop_s; });
    add([](const RecoveryPhases& p) { return p.start_s; });
    add([](const RecoveryPhases& p) { return p.load_s; });
    add([](const RecoveryPhases& p) { return p.first_step_s + p.replay_s; });
    t.rows.push_back(std::move(row));
  }
  t.note =
      "Sums over the recoveries of a scenario. Redo: the first step and all lost ones. A notice is detected when the "
      "run has saved and ended.";
  return t;
}

Table simulated_recovery_table(const std::vector<std::pair<std::string, SimulatedScenario>>& simulated) {
  Table t{
      .title = "Recoveries, simulated",
      .columns = {"scenario", numeric("event"), numeric("fault at", "s"), numeric("restarts"), numeric("lost", "steps"),
                  numeric("detect", "s"), numeric("stop", "s"), numeric("start", "s"), numeric("load", "s"),
                  numeric("replay", "s"), numeric("notice", "s"), numeric("slower", "s"), numeric("total", "s")}};
  for (const auto& [name, scenario] : simulated)
    for (const SimulatedFault& s : scenario.faults)
      t.rows.push_back({name, whole(static_cast<std::int64_t>(s.event) + 1), seconds(s.at_s), whole(s.restarts),
                        whole(s.steps_lost), seconds(s.detect_s), seconds(s.down_s - s.detect_s), seconds(s.start_s),
                        seconds(s.load_s), seconds(s.replay_s), seconds(s.planned_s), seconds(s.slower_s),
                        seconds(s.total_s())});
  t.note =
      "Stop: until the next action is decided, with waiting for nodes. Replay: lost steps done again. Notice: until "
      "the run has saved and ended. Slower: steps that took longer.";
  return t;
}

std::string drill_sentence(const DrillResult& result) {
  const auto passed = std::ranges::count_if(result.cases, [](const DrillCase& c) { return c.passed(); });
  return result.passed()
             ? "Recovery was exact: every fault was injected, and each run ended as its scenario says."
             : fmt::format("Recovery was NOT exact: {} of {} scenarios passed; the folders of the cases have the rest.",
                           passed, result.cases.size());
}

Section drill_section(const DrillResult& result) {
  Section s{"recovery", "Faults and recovery", {}, {}};
  s.paragraphs.push_back(
      "Faults were injected into real ranks; the agent restarted them from the newest checkpoint that could be read.");
  s.items.push_back(Callout{result.passed() ? Status::good : Status::bad,
                            result.passed() ? "Recovery was exact" : "Recovery was not exact", drill_sentence(result)});
  s.items.push_back(drill_table(result));
  s.items.push_back(recovery_table(result));
  if (const Table predicted = predicted_recovery_table(result); !predicted.rows.empty()) {
    s.items.push_back(predicted);
    s.items.push_back(predicted_phases_table(result));
  }
  return s;
}

}  // namespace wt
