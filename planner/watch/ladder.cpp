#include "planner/watch/ladder.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

#include "configs/base/error.hpp"
#include "configs/base/quantity.hpp"

namespace wt {
namespace {

/// Restarts are counted by cause.
std::string cause_of(const WatchSignal& signal) {
  if (signal.metric == WatchedMetric::silence) return "silence";
  if (signal.metric == WatchedMetric::memory) return "memory";
  return is_loss_metric(signal.metric) ? "loss" : "pace";
}

}  // namespace

Ladder::Ladder(WatchRules rules, std::int64_t spares, bool acts, AskPlanner ask, NodeLedger ledger)
    : rules_(std::move(rules)), spares_(spares), acts_(acts), ask_(std::move(ask)), ledger_(std::move(ledger)) {
  if (!acts_) ledger_.trial.reset();  // the trial belongs to the watch that acts
  if (!ledger_.trial) return;         // an earlier watch began it
  problem_.signals = {ledger_.trial->signal};
  excluded_now_ = ledger_.trial->excluded, option_taken_ = ledger_.trial->option;
  before_ = {ledger_.trial->layout, ledger_.trial->step_factor};
}

std::optional<WatchVerdict> Ladder::look(const RunSnapshot& snapshot) {
  if (running_)
    throw_runtime("watch: found a run to look at while {} goes on, needs its end first", to_string(running_->hook));
  forget_causes(snapshot);
  if (ledger_.trial) return verify(snapshot);
  // If someone has started the job meanwhile, they have decided about the checkpoint.
  const auto lost = ledger_.causes.find("loss");
  if (!acts_ || lost == ledger_.causes.end() || snapshot.step > lost->second.step) ledger_.rollback.reset();
  if (snapshot.ended || snapshot.signals.empty()) {
    if (handled_rules_.empty()) return {};
    problem_ = snapshot;
    handled_rules_.clear();
    return note(snapshot.ended ? "the run has ended" : "nothing is wrong any more");
  }
  if (!is_new(snapshot.signals)) return {};
  problem_ = snapshot;
  std::stable_partition(problem_.signals.begin(), problem_.signals.end(),
                        [gravest = cause()](const WatchSignal& signal) { return cause_of(signal) == gravest; });
  for (const WatchSignal& signal : snapshot.signals) handled_rules_.insert(signal.rule);
  before_ = {ledger_.layout, ledger_.step_factor};
  excluded_now_.clear(), reasons_.clear(), option_taken_.reset(), first_sweep_.reset();
  return begin();
}

bool Ladder::is_new(const std::vector<WatchSignal>& signals) const {
  return std::ranges::any_of(signals, [&](const WatchSignal& signal) { return !handled_rules_.contains(signal.rule); });
}

std::optional<WatchVerdict> Ladder::ended(const ActionEnd& end) {
  if (!running_) throw_runtime("watch: found the end of an action, needs one that goes on");
  const WatchAction action = *std::exchange(running_, {});
  problem_.now_unix_s = end.unix_s;
  if (end.end.how == HookEnd::How::ok)
    succeeded(action, end);
  else
    failed(action, end.end);
  return next();
}

std::optional<std::pair<WatchSignal, double>> Ladder::verifies() const {
  if (!ledger_.trial) return {};
  return std::pair{ledger_.trial->signal, ledger_.trial->unix_s};
}

/// Drops the counts of causes that are over. Silence: once a further step is done. Other causes: once a restart has
/// helped and the run is beyond the step of the signal. Earlier steps say nothing about a loss that diverges at the
/// same step each time.
void Ladder::forget_causes(const RunSnapshot& snapshot) {
  std::erase_if(ledger_.causes, [&](const auto& entry) {
    const auto& [cause, count] = entry;
    if (snapshot.step <= count.step) return false;
    if (cause == "silence") return true;
    return count.helped && std::ranges::none_of(snapshot.signals, [&](const WatchSignal& signal) {
             return cause_of(signal) == entry.first;
           });
  });
}

std::optional<WatchVerdict> Ladder::begin() {
  const Diagnosis& d = problem_.diagnosis;
  if (!ledger_.breaker.empty())
    return note("nothing is done until a human closes the circuit breaker (--reset): " + ledger_.breaker);
  switch (d.ailment) {
    case Ailment::imbalanced_router:
    case Ailment::starved_input:
      return note(fmt::format("{}: no node is at fault, nobody is touched", to_string(d.ailment)));
    case Ailment::slow_hardware:
      return begin_slow();
    case Ailment::silent_failure:
      return cause() == "loss" ? begin_lost() : begin_silent();
    case Ailment::fine:
    case Ailment::undecided:
      break;
  }
  const bool slow = cause() == "pace";
  if (slow && rules_.sweep_undecided) return begin_slow();
  return leave_to_human("what is at hand does not say why: " + d.reason);
}

std::optional<WatchVerdict> Ladder::begin_slow() {
  ask(static_cast<std::int64_t>(ledger_.excluded().size()) + 1);
  if (cheapest_option(alternatives_) == RecoveryOption::go_on) {
    option_ = RecoveryOption::go_on;
    return note("nobody is touched: to stop costs more than to go on as it is");
  }
  return restart("slow hardware: " + problem_.diagnosis.reason, true, true);
}

/// The first silence gets only a restart. The second time the hardware is checked.
std::optional<WatchVerdict> Ladder::begin_silent() {
  return restart(problem_.diagnosis.reason, false, known_of_cause().restarts > 0);
}

/// Steps since the loss diverged are not worth a save. If it diverges again at the same step, the rollback goes further
/// back.
std::optional<WatchVerdict> Ladder::begin_lost() {
  const CauseCount known = known_of_cause();
  if (problem_.rollback_targets && known.restarts < rules_.restarts) {
    ledger_.rollback = choose_rollback(*problem_.rollback_targets, first_bad_step(), rules_.rollback, known.back_to);
    if (!ledger_.rollback)
      return leave_to_human(
          why_no_rollback(*problem_.rollback_targets, first_bad_step(), rules_.rollback, known.back_to));
  }
  return restart(problem_.diagnosis.reason, false, true);
}

std::optional<WatchVerdict> Ladder::restart(const std::string& why, bool save, bool sweep) {
  if (!acts_)
    return note(fmt::format("{}. Would {}stop, {}start{} and verify; it only logs (--act acts)", why,
                            save ? "save, " : "", sweep ? "sweep twice, cordon what both sweeps find, " : "",
                            ledger_.rollback ? " " + to_string(*ledger_.rollback) : ""));
  CauseCount& count = ledger_.causes[cause()];
  if (count.restarts >= rules_.restarts) {
    open_breaker(fmt::format("{} restarts for one cause ({}) without progress", count.restarts, cause()));
    return next();
  }
  ++count.restarts, count.step = problem_.step, count.helped = false;
  if (save) plan(HookKind::save, why);
  plan(HookKind::stop, save ? "it is saved" : why);
  sweep ? plan(HookKind::sweep, "which node is it?") : plan_start(before_, "from the newest checkpoint");
  return next();
}

std::optional<WatchVerdict> Ladder::verify(const RunSnapshot& snapshot) {
  const bool late = snapshot.now_unix_s > ledger_.trial->unix_s + rules_.verify_s;
  if (!snapshot.recovered && !snapshot.ended && !late) return {};
  ledger_.trial.reset();
  problem_.now_unix_s = snapshot.now_unix_s, problem_.step = snapshot.step;
  const std::string rule = problem_.signals.front().rule;
  if (snapshot.recovered.value_or(false)) {
    handled_rules_.clear();
    if (const auto known = ledger_.causes.find(cause()); known != ledger_.causes.end()) known->second.helped = true;
    forget_causes(snapshot);
    return note(fmt::format("it helped: '{}' no longer holds", rule));
  }
  if (!snapshot.recovered && snapshot.ended) return note("the run ended before it could be verified");
  const std::string why = snapshot.recovered ? fmt::format("it did not help: '{}' still holds", rule)
                                             : fmt::format("no {} steps came within {}", rules_.verify_steps,
                                                           format_seconds(rules_.verify_s));
  if (!excluded_now_.empty()) {
    undo(why);
    return next();
  }
  if (!snapshot.recovered || cause() == "loss")
    handled_rules_.clear();  // so that silence is noticed, or the rollback goes further back
  return note(why);
}

std::optional<WatchVerdict> Ladder::next() {
  if (planned_.empty()) return {};
  const Planned now = planned_.front();
  planned_.pop_front();
  running_ = now.action;
  running_->excluded = ledger_.excluded();
  WatchVerdict out = note(now.why);
  out.action = running_;
  return out;
}

/// With the alternatives of the current problem, if not reported yet.
WatchVerdict Ladder::note(std::string why) {
  WatchVerdict out{problem_.now_unix_s, std::move(why), problem_.signals, {}, std::move(alternatives_), option_, {}};
  if (!problem_.signals.empty()) out.diagnosis = problem_.diagnosis;
  alternatives_.clear(), option_.reset();
  return out;
}

void Ladder::plan(HookKind hook, std::string why, std::string node) {
  planned_.push_back({{.hook = hook, .node = std::move(node)}, std::move(why)});
}

void Ladder::plan_start(const StartLayout& layout, std::string why) {
  WatchAction start{.hook = HookKind::start, .layout = layout.file, .step_factor = layout.step_factor};
  start.rollback = ledger_.rollback, start.skipped = ledger_.skipped;
  if (ledger_.rollback) {
    start.skipped = united(start.skipped, {ledger_.rollback->skipped});
    why += "; " + to_string(*ledger_.rollback);
  }
  planned_.push_back({std::move(start), std::move(why)});
}

std::optional<WatchVerdict> Ladder::leave_to_human(const std::string& why) {
  if (!acts_) return note("a human is to look: " + why);
  plan(HookKind::tell, why);
  return next();
}

void Ladder::open_breaker(const std::string& why) {
  ledger_.breaker = why;
  plan(HookKind::tell, "the circuit breaker opens, a human has to look: " + why);
}

void Ladder::start_as_it_was(const std::string& why) {
  plan_start(before_, why + "; starts as it was, nobody is excluded");
  plan(HookKind::tell, why + "; nobody was excluded");
}

std::set<std::string> Ladder::guilty_in(const HealthVerdict& verdict) {
  std::set<std::string> out;
  for (const NodeVerdict& node : verdict.nodes)
    for (const Finding& finding : node.findings)
      if (finding.state == NodeState::cordon && finding.confidence >= rules_.sure && out.insert(node.node).second)
        reasons_[node.node] = fmt::format("{}: {}", finding.what, finding.reason);
  return out;
}

void Ladder::swept(const HealthVerdict& verdict) {
  for (const NodeVerdict& node : verdict.nodes)
    if (const auto known = ledger_.cordoned.find(node.node); known != ledger_.cordoned.end()) known->second.back = true;
  nodes_ = static_cast<std::int64_t>(verdict.nodes.size() + ledger_.excluded().size());
  const std::set<std::string> guilty = guilty_in(verdict);
  // One sweep is enough for a node that was cordoned before.
  const auto certain = [&](const std::string& node) { return ledger_.cordoned.contains(node); };
  if (!first_sweep_) {
    if (guilty.empty()) return start_as_it_was("the sweep holds nothing against any node");
    if (std::ranges::all_of(guilty, certain)) return conclude(guilty);
    first_sweep_ = guilty;
    return plan(HookKind::sweep, fmt::format("a second time, to be sure of {}", fmt::join(guilty, ", ")));
  }
  std::set<std::string> both;
  for (const std::string& node : *first_sweep_)
    if (guilty.contains(node) || certain(node)) both.insert(node);
  if (both.empty())
    return start_as_it_was(fmt::format("the second sweep does not find {} again", fmt::join(*first_sweep_, ", ")));
  conclude(both);
}

void Ladder::ask(std::int64_t nodes_lost) {
  LossFigures figures = ask_({nodes_lost, problem_.step, slow_factor()});
  figures.spare = spares_ - ledger_.spares_used >= nodes_lost - static_cast<std::int64_t>(ledger_.excluded().size());
  shrunk_ = {figures.shrunk_layout, figures.shrunk_factor.value_or(1)};
  alternatives_ = wt::alternatives(figures);
}

void Ladder::conclude(const std::set<std::string>& guilty) {
  const auto excluded = static_cast<std::int64_t>(ledger_.excluded().size() + guilty.size());
  std::set<std::string> ever = guilty;  // returned nodes count, too: a human may not have looked at them
  for (const auto& [node, state] : ledger_.cordoned) ever.insert(node);
  if (static_cast<double>(ever.size()) > rules_.most_excluded * static_cast<double>(nodes_)) {
    const std::string why = fmt::format("{} of {} nodes would be excluded, without a human {:.0f} % may be: {}",
                                        ever.size(), nodes_, 100 * rules_.most_excluded, fmt::join(guilty, ", "));
    plan_start(before_, why + "; starts as it was");
    return open_breaker(why);
  }
  ask(excluded);
  const bool spare = alternatives_[static_cast<std::size_t>(RecoveryOption::spare)].possible;
  option_ = option_taken_ = spare ? RecoveryOption::spare : cheapest_option(alternatives_);
  if (!option_taken_) return start_as_it_was("no spare is left, and what else it would cost is UNKNOWN");
  if (*option_taken_ == RecoveryOption::go_on)
    return start_as_it_was("no spare is left, and to go on as it is loses least");
  exclude(guilty);
}

void Ladder::exclude(const std::set<std::string>& guilty) {
  for (const std::string& node : guilty) plan(HookKind::cordon, reasons_[node], node);
  const std::string names = fmt::format("{}", fmt::join(guilty, ", "));
  if (*option_taken_ == RecoveryOption::wait)
    return open_breaker(fmt::format("the job stands until {} is repaired{}", names,
                                    ledger_.rollback ? "; then start it " + to_string(*ledger_.rollback) : ""));
  plan_start(*option_taken_ == RecoveryOption::shrink ? shrunk_ : before_,
             fmt::format("{}, without {}", to_string(*option_taken_), names));
}

void Ladder::cordoned(const std::string& node) {
  ledger_.cordoned[node] = {problem_.now_unix_s, false};
  excluded_now_.push_back(node);
  ledger_.spares_used += option_taken_ == RecoveryOption::spare;
}

/// Uncordons the nodes that were excluded for the current problem.
void Ladder::uncordon_excluded() {
  for (const std::string& node : excluded_now_) plan(HookKind::uncordon, "undo: " + reasons_[node], node);
  excluded_now_.clear();
}

void Ladder::undo(const std::string& why) {
  uncordon_excluded();
  if (option_taken_ == RecoveryOption::shrink) {
    if (cause() != "loss") plan(HookKind::save, "undo: back to all nodes");
    plan(HookKind::stop, "undo: back to all nodes");
    plan_start(before_, "undo: back to all nodes");
  }
  plan(HookKind::tell, why + "; what was cordoned is free again");
}

void Ladder::succeeded(const WatchAction& action, const ActionEnd& end) {
  switch (action.hook) {
    case HookKind::sweep:
      return swept(end.sweep);
    case HookKind::cordon:
      return cordoned(action.node);
    case HookKind::uncordon:
      ledger_.cordoned.erase(action.node);
      ledger_.spares_used -= option_taken_ == RecoveryOption::spare;
      return;
    case HookKind::start:
      start_failed_ = false;
      ledger_.trial = {problem_.signals.front(), end.unix_s, excluded_now_, option_taken_, before_.file,
                       before_.step_factor};
      ledger_.layout = action.layout, ledger_.step_factor = action.step_factor;
      ledger_.skipped = action.skipped, ledger_.rollback.reset();
      if (action.rollback) ledger_.causes["loss"].back_to = action.rollback->step;
      return;
    case HookKind::save:
    case HookKind::stop:
    case HookKind::tell:
      return;
  }
}

/// An action that fails leaves the nodes as they were.
void Ladder::failed(const WatchAction& action, const HookEnd& end) {
  switch (action.hook) {
    case HookKind::save:
      planned_.clear();
      return plan(HookKind::tell, "no save, so the job was left as it is: " + end.said);
    case HookKind::stop:
      planned_.clear(), ledger_.rollback.reset();
      return open_breaker("the job could not be stopped: " + end.said);
    case HookKind::sweep:
      return start_as_it_was("the sweep cannot answer: " + end.said);
    case HookKind::cordon: {
      planned_.clear();
      if (end.how == HookEnd::How::timed_out) cordoned(action.node);  // it may be cordoned
      uncordon_excluded();
      return start_as_it_was(fmt::format("{} could not be cordoned: {}", action.node, end.said));
    }
    case HookKind::uncordon:
      return plan(HookKind::tell, fmt::format("{} could not be given back: {}", action.node, end.said));
    case HookKind::start:
      if (!std::exchange(start_failed_, true)) {
        planned_.push_front({action, "once more: " + end.said});
        return;
      }
      planned_.clear();
      return open_breaker(fmt::format("the job could not be started{}: {}",
                                      action.rollback ? " " + to_string(*action.rollback) : "", end.said));
    case HookKind::tell:
      return;  // the decision says so
  }
}

/// The most severe cause of the signals.
std::string Ladder::cause() const {
  for (const char* cause : {"silence", "loss", "pace"})
    if (std::ranges::any_of(problem_.signals, [&](const WatchSignal& signal) { return cause_of(signal) == cause; }))
      return cause;
  return "memory";
}

CauseCount Ladder::known_of_cause() const {
  const auto known = ledger_.causes.find(cause());
  return known == ledger_.causes.end() ? CauseCount{} : known->second;
}

std::int64_t Ladder::first_bad_step() const {
  std::int64_t first = std::numeric_limits<std::int64_t>::max();
  for (const WatchSignal& signal : problem_.signals)
    if (is_loss_metric(signal.metric)) first = std::min(first, signal.first_step);
  return first;
}

std::optional<double> Ladder::slow_factor() const {
  if (cause() != "pace" || !(problem_.diagnosis.relative_pace > 0)) return {};
  return 1 / problem_.diagnosis.relative_pace;
}

}  // namespace wt
