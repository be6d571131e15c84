#include "sim/months/fault_laws.hpp"

#include <algorithm>
#include <fstream>
#include <sstream>

#include "configs/base/error.hpp"
#include "configs/base/number.hpp"
#include "configs/base/quantity.hpp"

namespace wt {
namespace {

bool same_law(const FaultLaw& a, const FaultLaw& b) {
  return a.effect == b.effect && a.domain == b.domain && a.shape == 1 && b.shape == 1 && a.bad_share == b.bad_share &&
         a.bad_factor == b.bad_factor && a.lasts_s == b.lasts_s && a.sigma == b.sigma && !a.periodic && !b.periodic;
}

/// Exponential laws of the same entities merge into one, whose rate is the sum of theirs.
void add_law(std::vector<FaultLaw>& laws, const FaultLaw& law) {
  if (law.mean_s <= 0) return;
  for (FaultLaw& known : laws)
    if (same_law(known, law)) {
      known.mean_s = 1 / (1 / known.mean_s + 1 / law.mean_s);
      return;
    }
  laws.push_back(law);
}

/// Wall seconds at the middle of a step of an undisturbed run.
double middle_of_step(const RunScenario& run, std::int64_t step) {
  const double saves = as_double((step - 1) / run.interval_steps);
  const double locals = run.local.interval_steps > 0 ? as_double((step - 1) / run.local.interval_steps) - saves : 0;
  return run.restart_s + run.startup_s + (as_double(step) - 0.5) * run.step_s +
         saves * (run.blocking_s + run.silent.verify_s) + locals * (run.local.blocking_s + run.silent.verify_s);
}

/// Whether the event makes the newest save in storage useless. A copy in memory has another copy. A save is found
/// without the file `latest`.
bool spoils_newest(const FaultEffect& what) {
  return what.kind == FaultKind::damage && what.level == CopyLevel::storage && what.damage != FileDamage::stale_latest;
}

/// Bit 30 is the top bit of the exponent: the gradient norm is not finite, and the step is not applied.
bool is_not_finite(const FaultEffect& what) {
  return what.kind == FaultKind::corrupt && what.tensor == TensorKind::gradient && what.bit == 30;
}

/// The law of an event, without its rate.
FaultLaw effect_of(const FaultEvent& e) {
  FaultLaw law{.domain = e.who.domain, .lasts_s = e.lasts_s.value_or(0), .detect_s = e.detected_within_s.value_or(-1)};
  switch (e.what.kind) {
    case FaultKind::damage:
      law.effect = FaultLaw::Effect::damage;
      law.loses_newest_save = spoils_newest(e.what);
      break;
    case FaultKind::corrupt:
      if (!is_not_finite(e.what)) law.effect = FaultLaw::Effect::silent;
      law.nodes_to_repair = false;
      break;
    case FaultKind::disk_full:
    case FaultKind::file_too_large:
      law.loses_newest_save = true;  // the save was never complete
      law.nodes_to_repair = false;
      break;
    case FaultKind::slow:
      law.effect = e.detected_within_s ? FaultLaw::Effect::slow_replaced : FaultLaw::Effect::slow;
      law.factor = e.what.factor;
      law.lasts_s = e.detected_within_s ? *e.detected_within_s : e.lasts_s.value_or(kLongest_s / 2);
      break;
    case FaultKind::maintenance:
      law.effect = FaultLaw::Effect::planned;
      break;
    case FaultKind::partition:
    case FaultKind::hang:
      law.nodes_to_repair = e.who.domain != FaultDomain::rank;
      break;
    default:
      law.loses_local_copies = e.what.takes_local_copies;
  }
  return law;
}

/// The law of an event, for the entities that the tree has.
FaultLaw law_of(const FaultEvent& e, const EntityTree& tree, const std::string& where) {
  using enum FaultDomain;
  FaultLaw law = effect_of(e);
  if (e.who.domain == storage && e.what.kind != FaultKind::damage)
    throw_usage(
        "{}: found {} of the storage, which simulated months do not know; needs damage, or rank, node, rack, replica, "
        "leaf, rail, store, agent or all",
        where, to_string(e.what.kind));
  const bool goes_on = tree.replicas > 0 && law.effect == FaultLaw::Effect::failure;
  const bool stops_all = goes_on && (e.what.kind == FaultKind::hang || e.what.kind == FaultKind::partition);
  const bool no_part = e.who.domain == storage || e.who.domain == store || e.who.domain == agent ||
                       (e.who.domain == replica && tree.replicas == 0);
  if (no_part || stops_all) law.domain = all, law.nodes_to_repair = false;  // every rank stops, no node is lost
  return law;
}

/// Rows time_s,index,lasts_s. Each row gets its own law, because it has its own duration.
void add_trace_file(const FaultEvent& e, const FaultLaw& law, FaultLaws& out) {
  std::ifstream in(e.when.trace);
  std::string line;
  if (!in || !std::getline(in, line) || line != "time_s,index,lasts_s")
    throw_usage("{}: cannot be read as a trace of faults; needs a CSV file with the columns time_s,index,lasts_s",
                e.when.trace.string());
  for (int number = 2; std::getline(in, line); ++number) {
    double time_s = -1, lasts_s = -1;
    std::int32_t index = -1;
    char comma = 0, other = 0;
    std::istringstream row(line);
    if (!(row >> time_s >> comma >> index >> other >> lasts_s) || comma != ',' || other != ',' ||
        !(row >> std::ws).eof() || !(time_s >= 0 && time_s < kLongest_s) || index < 0 ||
        !(lasts_s >= 0 && lasts_s < kLongest_s))
      throw_usage("{}:{}: found '{}', needs a time, a member and how long it lasts, as 3600,4,86400",
                  e.when.trace.string(), number, line);
    out.scheduled.push_back({time_s, static_cast<std::int32_t>(out.laws.size()), index});
    out.laws.push_back(law);
    if (lasts_s > 0) out.laws.back().lasts_s = lasts_s;
  }
}

/// Times of a scenario's events that are not at a rate, one after the other.
class ScheduledTimes {
 public:
  explicit ScheduledTimes(const RunScenario& run) : run_(run) {}

  double next(const FaultEvent& e, bool again) {
    const double down_s = run_.detect_s + run_.reschedule_s, up_s = run_.restart_s + run_.reload_s;
    if (e.when.by == FaultTime::By::time) {
      at_s_ = e.when.time_s;
    } else if (e.when.place == FaultTime::Place::restart) {
      at_s_ += down_s + run_.restart_s / 2;
    } else if (e.when.place == FaultTime::Place::reload) {
      at_s_ += down_s + run_.restart_s + run_.reload_s / 2;
    } else if (again || e.generation > 0) {  // in the run that recovered from the previous fault
      const std::int64_t saved = (std::max<std::int64_t>(1, step_) - 1) / run_.interval_steps * run_.interval_steps;
      at_s_ += down_s + up_s + middle_of_step(run_, e.when.step) - middle_of_step(run_, saved + 1) + run_.step_s / 2;
      step_ = e.when.step;
    } else {
      at_s_ = middle_of_step(run_, step_ = e.when.step);
      if (e.when.saved) at_s_ = std::max(at_s_, saved_before(step_));
    }
    if (e.when.place == FaultTime::Place::checkpoint) at_s_ += run_.step_s / 2 + run_.blocking_s + run_.persist_s / 2;
    if (e.when.place == FaultTime::Place::manifest)  // the data of the save after the step are written
      at_s_ += run_.step_s / 2 + run_.blocking_s + run_.persist_s + 1e-9;
    return at_s_;
  }

 private:
  /// When the save before a step is complete.
  double saved_before(std::int64_t step) const {
    const std::int64_t saved = (step - 1) / run_.interval_steps * run_.interval_steps;
    return middle_of_step(run_, saved + 1) - run_.step_s / 2 + run_.persist_s + 1e-9;
  }

  const RunScenario& run_;
  double at_s_ = 0;        ///< of the previous fault
  std::int64_t step_ = 0;  ///< step of the previous fault
};

}  // namespace

double entity_mean_s(const EntityTree& tree, FaultDomain domain, double per_1000_node_days) {
  if (per_1000_node_days <= 0) return 0;
  tree.count(domain);  // throws if the part is not described
  const double all = as_double(tree.nodes);
  const double nodes_each = domain == FaultDomain::rank   ? 1 / as_double(tree.ranks_per_node)
                            : domain == FaultDomain::node ? 1
                            : domain == FaultDomain::rack ? as_double(tree.nodes_per_rack)
                            : domain == FaultDomain::leaf ? as_double(tree.nodes_per_leaf)
                            : domain == FaultDomain::rail ? all / as_double(tree.rails)
                                                          : all;
  return 1000 * kDay_s / (per_1000_node_days * nodes_each);
}

FaultLaws preset_laws(const FailurePreset& preset, const EntityTree& tree, double mtbf) {
  FaultLaws out;
  for (const FailureClass& c : preset.failures)
    add_law(out.laws, {.domain = c.domain,
                       .mean_s = mtbf * entity_mean_s(tree, c.domain, c.per_1000_node_days.value),
                       .shape = c.shape,
                       .bad_share = c.bad.share,
                       .bad_factor = c.bad.factor});
  for (const FailureClass& c : preset.planned)
    add_law(out.laws, {.effect = FaultLaw::Effect::planned,
                       .domain = FaultDomain::all,
                       .mean_s = entity_mean_s(tree, FaultDomain::all, c.per_1000_node_days.value),
                       .lasts_s = c.duration.value,
                       .sigma = c.duration.sigma()});
  return out;
}

void add_run_laws(const RunScenario& run, const EntityTree& tree, FaultLaws& out) {
  if (run.maintenance_every_s > 0)
    out.laws.push_back({.effect = FaultLaw::Effect::planned,
                        .domain = FaultDomain::all,
                        .mean_s = run.maintenance_every_s,
                        .periodic = true,
                        .lasts_s = run.maintenance_s});
  if (const StragglerLaw& slow = run.stragglers; slow.mean_s > 0)
    out.laws.push_back({.effect = slow.exchanged ? FaultLaw::Effect::slow_replaced : FaultLaw::Effect::slow,
                        .mean_s = slow.mean_s * as_double(tree.nodes),
                        .lasts_s = slow.duration_s,
                        .factor = slow.factor});
}

void add_scenario(const Scenario& scenario, const RunScenario& run, const EntityTree& tree, FaultLaws& out) {
  ScheduledTimes times(run);
  for (std::size_t i = 0; i < scenario.events.size(); ++i) {
    const FaultEvent& e = scenario.events[i];
    FaultLaw law = law_of(e, tree, fmt::format("{}: event {}", scenario.file.string(), i + 1));
    if (e.when.by == FaultTime::By::trace) {
      add_trace_file(e, law, out);
    } else if (e.when.by == FaultTime::By::rate) {
      law.mean_s = entity_mean_s(tree, law.domain, e.when.per_1000_node_days);
      law.shape = e.when.shape;
      if (e.who.share > 0) law.bad_share = e.who.share, law.bad_factor = FaultLaw::kOnlyBadFail;
      out.laws.push_back(law);
    } else {
      const auto member = static_cast<std::int32_t>(law.domain == FaultDomain::all ? 0 : e.who.index.value_or(0));
      for (int repeat = 0; repeat < e.repeats; ++repeat)
        out.scheduled.push_back({times.next(e, repeat > 0), static_cast<std::int32_t>(out.laws.size()), member});
      out.laws.push_back(law);
    }
    out.event_of.resize(out.laws.size(), i);
  }
}

}  // namespace wt
