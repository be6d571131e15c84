#include "planner/plan/policy_table.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "configs/base/number.hpp"
#include "configs/base/quantity.hpp"
#include "configs/base/statistics.hpp"
#include "configs/base/text.hpp"
#include "planner/cadence/recovery_formulas.hpp"
#include "planner/plan/plan.hpp"
#include "sim/months/fault_laws.hpp"

namespace wt {
namespace {

constexpr double kMuchVariation = 0.1;  // if goodputs vary more, policies are ranked by the tenth percentile
constexpr double kTie = 1e-3;           // relative goodput; ties go to the earlier, simpler policy
constexpr double kGivesUp = 10;         // a run is given up after so many times its undisturbed time
constexpr double kGivesUpAtOnce = 2;    // the same for runs with more than kMostFailures until then
constexpr double kMostFailures = 1e5;
constexpr double kFailuresATrace = 40;  // with more failures per run, fewer traces are replayed
constexpr std::int64_t kFewestTraces = 10;
constexpr std::int64_t kFewerSpares = 2;
constexpr std::int64_t kMoreSpares = 3;  // in addition to the closed form's number

/// Time until a silent error is found without verification; 0 = unknown, or no silent errors.
double found_unverified_s(const StudySpec& study, const CadenceInput& in) {
  return in.silent.mean_s > 0 ? study.silent_errors.found_after_s : 0;
}

/// Collects a table's rows, and the policies whose inputs are known.
class Rows {
 public:
  Rows(const PlanInputs& inputs, const Layout& layout, const RunSchedule& schedule, std::int64_t spares)
      : study_(inputs.study),
        layout_(layout),
        schedule_(schedule),
        spares_(spares),
        plain_(schedule.input),
        copies_(state_copies(layout)),
        errors_found_(found_unverified_s(inputs.study, schedule.input) > 0) {
    plain_.local = {}, plain_.silent = {}, plain_.tolerance = {};
    plain_plan_ = choose_cadence(plain_);
    downtime_s_ = plain_.recovery.detect_s.value + plain_.recovery.reschedule_s.value;
    ready_s_ = plain_.recovery.restart_s.value + plain_.recovery.reload_s.value;
  }

  std::vector<PolicyRow> rows;
  std::vector<BreakEvenSurface> surfaces;
  std::vector<TracedPolicy> policies;
  std::vector<std::size_t> row_of;     ///< by policy
  std::vector<CadenceInput> input_of;  ///< by policy

  void all() {
    known(kNoFailure, "saves and planned stops alone: the upper bound", plain_, spares_, {}, false);
    known("wait for repair",
          fmt::format("no spares: the job waits for the node, {} each", format_seconds(plain_.repair_s.value)), plain_,
          0);
    known(kRestartFromStorage,
          fmt::format("a node that stands by, else waits; down {} and {} until it trains", format_seconds(downtime_s_),
                      format_seconds(ready_s_)),
          plain_, spares_);
    from_local_copies();
    hot_spares();
    shrink_and_grow();
    without_a_replica();
    verified_rollback();
  }
  ChosenPolicy chosen_run(const PolicyTable& table) const {
    const auto i = static_cast<std::size_t>(std::ranges::find(row_of, table.chosen) - row_of.begin());
    ChosenPolicy out{input_of[i], {}, policies[i]};
    if (!errors_found_) out.input.silent = schedule_.input.silent;
    out.cadence = choose_cadence(out.input);
    const std::int64_t spares = policies[i].scenario.spares;
    out.cadence.spares = spares == spares_ ? table.spares : none_of(policies[i].name);
    out.traced.scenario = scenario(out.input, spares);
    return out;
  }
  double interval_s() const { return plain_plan_.interval_s.value; }
  RunScenario scenario(const CadenceInput& in, std::int64_t spares) const {
    RunScenario s = run_scenario(in, choose_cadence(in), schedule_.steps);
    s.spares = spares;
    const double work_s = as_double(s.steps) * s.step_s;
    s.wall_limit_s = (kGivesUp * work_s > kMostFailures * in.mtbf_s.value ? kGivesUpAtOnce : kGivesUp) * work_s;
    return s;
  }
  const CadenceInput& plain() const { return plain_; }

 private:
  void known(const std::string& name, const std::string& how, const CadenceInput& in, std::int64_t spares,
             const Continuation& continuation = {}, bool with_failures = true) {
    RunScenario s = scenario(in, spares);
    rows.push_back(
        {.policy = name, .how = how, .interval_s = as_double(s.interval_steps) * s.step_s, .spares = spares});
    row_of.push_back(rows.size() - 1);
    input_of.push_back(in);
    policies.push_back({name, s, continuation, with_failures});
    if (errors_found_ && with_failures && in.silent.mean_s == 0)
      policies.back().after_further_losses = after_silent_errors(in);
  }
  static SourcedNumber none_of(const std::string& policy) {
    return {0, {Evidence::derived, fmt::format("{}: no node stands by", policy)}};
  }
  /// Converts goodput without silent errors to the goodput of a policy that does not verify.
  std::function<double(double)> after_silent_errors(const CadenceInput& in) const {
    return [interval_s = rows.back().interval_s, found_s = study_.silent_errors.found_after_s,
            mean_s = schedule_.input.silent.mean_s, down_s = in.recovery.total_s() - in.recovery.detect_s.value](
               double goodput) { return unchecked_goodput(goodput, interval_s, found_s, mean_s, down_s); };
  }
  void unknown(const std::string& name, const std::string& missing, const std::string& break_even) {
    rows.push_back({.policy = name, .missing = missing, .break_even = break_even});
  }

  void from_local_copies() {
    const char* name = kLocalCopies;
    if (const LocalCheckpoints& local = schedule_.input.local; local.interval_steps > 0) {
      CadenceInput in = plain_;
      in.local = local;
      return known(name,
                   fmt::format("copies every {}; {:g} % of failures leave them whole ({}), reload {}",
                               counted(local.interval_steps, "step"), 100 * local.survival,
                               to_string(study_.checkpoint.local_evidence), format_seconds(local.reload_s)),
                   in, spares_);
    }
    const double q = least_survival_that_pays(plain_);
    unknown(name, "checkpoint.local (every, survival)",
            q <= 1 ? fmt::format(
                         "pays where more than {:.2g} % of failures leave them whole, at the best interval of copies",
                         100 * q)
                   : std::string(choose_cadence(plain_).interval_steps < 2
                                     ? "no room between two saves: every step is saved already"
                                     : "never pays: a copy costs more than failures lose"));
    surfaces.push_back(local_copies_surface(plain_));
  }

  /// Compares the longest time saved with the idle time of standbys, which could train otherwise.
  std::string idle_standbys(double cold_s) const {
    const double idle_s = as_double(spares_) * plain_.mtbf_s.value, gained_s = as_double(plain_.nodes) * cold_s;
    return fmt::format("{} that could train instead idle {:.3g} node-hours a failure, and gain {:.3g} at most",
                       counted(spares_, "standby"), idle_s / 3600, gained_s / 3600);
  }

  void hot_spares() {
    const char* name = kHotSpares;
    const double cold_s = plain_.recovery.reschedule_s.value + plain_.recovery.restart_s.value;
    if (study_.hot_spares.activate_s >= 0)
      return known(name,
                   fmt::format("a node whose processes are up: ready in {} ({}) instead of {}",
                               format_seconds(study_.hot_spares.activate_s), to_string(study_.hot_spares.evidence),
                               format_seconds(cold_s)),
                   plain_, spares_, {.activate_s = study_.hot_spares.activate_s});
    unknown(name, "hot_spares.activate",
            fmt::format("pays while a hot spare is ready in less than {} (reschedule and restart); {}",
                        format_seconds(cold_s), idle_standbys(cold_s)));
    surfaces.push_back(hot_spares_surface(plain_));
  }

  /// Continuation with as many units as there are copies of the state. The step factor follows from the redistribution
  /// of whole sequences.
  std::optional<Continuation> units(std::int64_t least) const {
    if (copies_ < 2 || plain_.nodes % copies_ != 0) return std::nullopt;
    Continuation c{.units = copies_, .min_units = least, .step_factor = {1}};
    for (std::int64_t k = 1; k <= copies_; ++k)
      c.step_factor.push_back(replica_step_factor(copies_, k, sequences_of_group(study_, layout_)));
    return c;
  }
  std::string one_less() const {
    return fmt::format("{:.3g} times the step with one of {} less",
                       replica_step_factor(copies_, copies_ - 1, sequences_of_group(study_, layout_)), copies_);
  }

  void shrink_and_grow() {
    const char* name = "shrink and grow";
    const auto c = units((copies_ + 1) / 2);
    if (c)
      return known(name, fmt::format("no spares: on with fewer replicas, each change a restart; {}", one_less()),
                   plain_, 0, *c);
    unknown(
        name,
        fmt::format("a step time on fewer nodes: the layout has {} on {}", counted(copies_, "replica"),
                    counted(plain_.nodes, "node")),
        fmt::format("pays where the speed left is more than {:.2g} % (two restarts of {} against a repair of {})",
                    100 * std::min(1.0, 2 * (plain_.recovery.detect_s.value + ready_s_) / plain_.repair_s.value),
                    format_seconds(plain_.recovery.detect_s.value + ready_s_), format_seconds(plain_.repair_s.value)));
  }

  void without_a_replica() {
    const char* name = kWithoutReplica;
    const auto c = units((copies_ + 1) / 2);
    if (c && study_.replica_loss.recover_s > 0) {
      CadenceInput in = plain_;
      in.tolerance = schedule_.input.tolerance;
      return known(
          name,
          fmt::format("the others stall {}, the replica is back after {} ({}); {}",
                      format_seconds(study_.replica_loss.stall_s), format_seconds(study_.replica_loss.recover_s),
                      to_string(study_.replica_loss.evidence), one_less()),
          in, spares_, *c);
    }
    if (!c)
      return unknown(
          name,
          fmt::format("replicas: the layout has {} on {}", counted(copies_, "replica"), counted(plain_.nodes, "node")),
          "needs a layout with several replicas of whole nodes");
    const double pays = replica_loss_that_pays(downtime_s_, ready_s_, interval_s(), 0, plain_.mtbf_s.value);
    const double slower = c->step_factor[static_cast<std::size_t>(copies_ - 1)];
    unknown(name, "replica_loss (recover, stall)",
            fmt::format("pays while stall + {:.2g} x recover stays below {} (a step with one replica less takes {:.3g} "
                        "times as long), and {} less for each percent that it slows every step",
                        1 - 1 / slower, format_seconds(pays), slower, format_seconds(plain_.mtbf_s.value / 100)));
  }

  /// The value of verification: what the other policies lose without it, or its break-even.
  std::string value_of_verification(const CadenceInput& in) const {
    if (const double after_s = study_.silent_errors.found_after_s; after_s > 0)
      return fmt::format("the others find a silent error after {} and lose that", format_seconds(after_s));
    return fmt::format(
        "the others train on with silent errors, of one in {}; pays where they find them after more than {}",
        format_seconds(in.silent.mean_s),
        format_seconds(latency_that_pays(interval_s(), in.silent.mean_s, in.silent.verify_s)));
  }

  void verified_rollback() {
    const char* name = kVerifiedRollback;
    if (schedule_.input.silent.mean_s > 0) {
      CadenceInput in = plain_;
      in.silent = schedule_.input.silent;
      return known(name,
                   fmt::format("as a restart from storage, and a check of {} before each save ({}); {}",
                               format_seconds(in.silent.verify_s), to_string(study_.silent_errors.evidence),
                               value_of_verification(in)),
                   in, spares_);
    }
    unknown(name, "silent_errors (rate, verify)",
            fmt::format("a check of {} before each save costs 0.1 % of the goodput, and pays where silent errors that "
                        "are found after a day occur more often than every {} of training",
                        format_seconds(1e-3 * interval_s()),
                        format_seconds(silent_mtbf_that_pays(interval_s(), kDay_s, 1e-3 * interval_s()))));
    surfaces.push_back(verification_surface(plain_));
  }

  const StudySpec& study_;
  const Layout& layout_;
  const RunSchedule& schedule_;
  std::int64_t spares_;
  CadenceInput plain_;
  CadencePlan plain_plan_;
  std::int64_t copies_;
  bool errors_found_;  ///< silent errors occur, and the time until they are found is known
  double downtime_s_ = 0, ready_s_ = 0;
};

FaultLaws laws_of(const PlanInputs& inputs, const RunScenario& run, const EntityTree& tree) {
  FaultLaws out = preset_laws(inputs.failures, tree, inputs.study.scale.mtbf);
  add_run_laws(run, tree, out);
  for (const Scenario& scenario : inputs.faults) add_scenario(scenario, run, tree, out);
  return out;
}

/// The fewest spares with 99.9 % of the best goodput.
std::int64_t fewest_spares(const std::vector<PolicyOutcome>& by_spares) {
  double best = 0;
  for (const PolicyOutcome& o : by_spares) best = std::max(best, mean(o.goodputs));
  const auto enough = [&](const PolicyOutcome& o) { return mean(o.goodputs) >= (1 - kTie) * best; };
  return std::ranges::find_if(by_spares, enough) - by_spares.begin();
}

/// Fewer traces if each run has many failures, so that a plan stays quick.
std::int64_t number_of_traces(const RunSchedule& schedule, std::int64_t runs, std::int64_t most) {
  const double failures = as_double(schedule.steps) * schedule.input.step_s.value / schedule.input.mtbf_s.value;
  const double affordable = kFailuresATrace * as_double(most) / std::max(1.0, failures);
  return std::clamp<std::int64_t>(static_cast<std::int64_t>(affordable), std::min(kFewestTraces, most),
                                  std::max<std::int64_t>(kFewestTraces, std::min(most, runs)));
}

/// The upper bound does not compete. Verification competes only if the other policies are charged for undetected
/// errors.
bool competes(const PolicyRow& row, bool errors_found) {
  return row.outcome && row.policy != kNoFailure && (errors_found || row.policy != kVerifiedRollback);
}

void choose(PolicyTable& table, bool errors_found) {
  const auto reference = std::ranges::find(table.rows, std::string(kRestartFromStorage), &PolicyRow::policy);
  table.reference = static_cast<std::size_t>(reference - table.rows.begin());
  for (PolicyRow& row : table.rows) {
    if (!row.outcome) continue;
    row.difference = paired_difference(row.outcome->goodputs, reference->outcome->goodputs);
    const bool may_win =
        competes(row, errors_found) && row.outcome->median_goodput() >= reference->outcome->median_goodput();
    table.by_p10 = table.by_p10 || (may_win && row.outcome->cv() > kMuchVariation);
  }
  const auto rank = [&](const PolicyRow& row) {
    return table.by_p10 ? row.outcome->p10_goodput() : row.outcome->median_goodput();
  };
  table.chosen = table.reference;
  std::string unknown;
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const PolicyRow& row = table.rows[i];
    if (competes(row, errors_found) && rank(row) > (1 + kTie) * rank(table.rows[table.chosen])) table.chosen = i;
    if (!row.outcome) unknown += (unknown.empty() ? "" : ", ") + row.policy;
  }
  const PolicyRow& best = table.rows[table.chosen];
  table.choice = fmt::format(
      "Of the policies whose inputs are known, {} is best: goodput {:.2f} % in the median, {:.2f} % in the tenth "
      "percentile of {} traces.",
      best.policy, 100 * best.outcome->median_goodput(), 100 * best.outcome->p10_goodput(), table.traces);
  if (!unknown.empty()) table.choice += fmt::format(" Not known: {}.", unknown);
}

}  // namespace

std::int64_t state_copies(const Layout& layout) { return layout.replicate / layout.optimizer_shard; }

std::int64_t sequences_of_group(const StudySpec& study, const Layout& layout) {
  return std::max<std::int64_t>(1, study.global_batch * layout.context / (layout.replicate * layout.shard));
}

PolicyTable compare_policies(const PlanInputs& inputs, const Layout& layout, const RunSchedule& schedule,
                             std::int64_t traces) {
  const StudySpec& study = inputs.study;
  const SourcedNumber closed_form = choose_cadence(schedule.input).spares;
  const auto wanted = study.spare_nodes.value_or(static_cast<std::int64_t>(closed_form.value));
  const std::int64_t most = study.spare_nodes ? wanted : wanted + kMoreSpares;
  const EntityTree tree = entity_tree(study.cluster, most);
  PolicyTable table;
  table.traces = number_of_traces(schedule, study.runs, traces);
  Rows rows(inputs, layout, schedule, most);
  FaultLaws laws = laws_of(inputs, rows.scenario(rows.plain(), most), tree);
  table.faults = {tree, std::move(laws.laws), std::move(laws.scheduled), study.seed};
  const auto replay = [&](const std::vector<TracedPolicy>& policies) {
    return replay_policies(table.faults, policies, table.traces);
  };
  std::int64_t spares = wanted;
  if (!study.spare_nodes) {
    std::vector<TracedPolicy> by_spares;
    const std::int64_t least = std::max<std::int64_t>(0, wanted - kFewerSpares);
    for (std::int64_t s = least; s <= most; ++s) by_spares.push_back({"", rows.scenario(rows.plain(), s), {}});
    spares = least + fewest_spares(replay(by_spares));
    table.spares = {as_double(spares),
                    {Evidence::derived,
                     fmt::format("the fewest of {} to {} with 99.9 % of the best goodput on {} traces of faults; {}",
                                 least, most, table.traces, closed_form.evidence.source)}};
  } else {
    table.spares = schedule.cadence.spares;
  }
  Rows final(inputs, layout, schedule, spares);
  final.all();
  const std::vector<PolicyOutcome> outcomes = replay(final.policies);
  for (std::size_t i = 0; i < outcomes.size(); ++i) final.rows[final.row_of[i]].outcome = outcomes[i];
  table.rows = std::move(final.rows);
  table.surfaces = std::move(final.surfaces);
  choose(table, found_unverified_s(study, schedule.input) > 0);
  table.run = final.chosen_run(table);
  return table;
}

}  // namespace wt
