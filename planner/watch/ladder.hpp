// The escalation ladder for a run in trouble, one action after the other: save, stop, sweep, sweep again, cordon,
// start, verify, undo. Pure: observations and results of actions go in, the next action comes out; time is an input.
// After it returned an action, ended() must be called before the next look().
#pragma once
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "bench/health/judge.hpp"
#include "configs/base/run_hook.hpp"
#include "planner/watch/alternatives.hpp"
#include "planner/watch/hooks.hpp"
#include "planner/watch/ledger.hpp"
#include "planner/watch/rollback.hpp"
#include "planner/watch/signals.hpp"

namespace wt {

/// The state of a run at one time.
struct RunSnapshot {
  double now_unix_s = 0;
  std::vector<WatchSignal> signals = {};
  Diagnosis diagnosis = {};  ///< used only with signals
  std::int64_t step = 0;     ///< last step done
  bool ended = false;
  std::optional<RollbackTargets> rollback_targets = {};  ///< used only if the loss diverged; empty = unknown
  std::optional<bool> recovered = {};  ///< while a start is verified: RunSignals::recovered for verifies()
};

/// One action with its arguments.
struct WatchAction {
  HookKind hook = HookKind::tell;
  std::string node = {};
  std::string layout = {};  ///< of a start: the run file, "" = the run's own
  double step_factor = 1;   ///< of that layout
  std::vector<std::string> excluded = {};
  std::optional<Rollback> rollback = {};  ///< of a start that goes back to an older checkpoint
  std::vector<BatchRange> skipped = {};   ///< of a start: all batches that the watch skips
};

/// A decision. Without an action nothing is changed.
struct WatchVerdict {
  double unix_s = 0;
  std::string why = {};
  std::vector<WatchSignal> signals = {};
  std::optional<Diagnosis> diagnosis = {};
  std::vector<Alternative> alternatives = {};
  std::optional<RecoveryOption> option = {};  ///< the chosen alternative
  std::optional<WatchAction> action = {};
};

/// The result of an action.
struct ActionEnd {
  double unix_s = 0;
  HookEnd end = {};
  HealthVerdict sweep = {};  ///< of a sweep that gave an answer
};

class Ladder {
 public:
  /// `acts`: false = it only says what it would do.
  Ladder(WatchRules rules, std::int64_t spares, bool acts, AskPlanner ask, NodeLedger ledger);

  std::optional<WatchVerdict> look(const RunSnapshot& snapshot);
  /// To be called when the action of the last verdict has ended. Returns the next verdict, if any.
  std::optional<WatchVerdict> ended(const ActionEnd& end);

  /// The signal that must end, and the time of the start that is verified; empty if no start is being verified.
  std::optional<std::pair<WatchSignal, double>> verifies() const;
  const NodeLedger& ledger() const { return ledger_; }
  /// Whether a signal is not handled yet. Then look() needs a diagnosis.
  bool is_new(const std::vector<WatchSignal>& signals) const;

 private:
  struct Planned {
    WatchAction action;
    std::string why;
  };
  struct StartLayout {
    std::string file;  ///< "" = the run's own
    double step_factor = 1;
  };

  std::optional<WatchVerdict> begin();
  std::optional<WatchVerdict> begin_slow();
  std::optional<WatchVerdict> begin_silent();
  std::optional<WatchVerdict> begin_lost();
  std::optional<WatchVerdict> verify(const RunSnapshot& snapshot);
  void forget_causes(const RunSnapshot& snapshot);
  std::optional<WatchVerdict> next();
  WatchVerdict note(std::string why);
  void plan(HookKind hook, std::string why, std::string node = "");
  void plan_start(const StartLayout& layout, std::string why);
  std::optional<WatchVerdict> restart(const std::string& why, bool save, bool sweep);
  std::optional<WatchVerdict> leave_to_human(const std::string& why);
  void swept(const HealthVerdict& verdict);
  void start_as_it_was(const std::string& why);
  void conclude(const std::set<std::string>& guilty);
  void exclude(const std::set<std::string>& guilty);
  void cordoned(const std::string& node);
  void uncordon_excluded();
  void undo(const std::string& why);
  void failed(const WatchAction& action, const HookEnd& end);
  void succeeded(const WatchAction& action, const ActionEnd& end);
  void open_breaker(const std::string& why);
  std::set<std::string> guilty_in(const HealthVerdict& verdict);
  std::string cause() const;
  CauseCount known_of_cause() const;
  std::int64_t first_bad_step() const;
  void ask(std::int64_t nodes_lost);
  std::optional<double> slow_factor() const;

  WatchRules rules_;
  std::int64_t spares_;
  bool acts_;
  AskPlanner ask_;
  NodeLedger ledger_;

  RunSnapshot problem_;                  ///< the observation that began the current problem
  std::set<std::string> handled_rules_;  ///< rules whose signal was handled and has not ended since
  std::deque<Planned> planned_;
  std::optional<WatchAction> running_;
  std::vector<Alternative> alternatives_;  ///< for the next verdict
  std::optional<RecoveryOption> option_;
  std::optional<std::set<std::string>> first_sweep_;  ///< nodes at fault in the first of two sweeps
  std::int64_t nodes_ = 0;                            ///< of the run, excluded ones included; 0 = unknown
  std::vector<std::string> excluded_now_;             ///< for the current problem
  std::map<std::string, std::string> reasons_;        ///< why a node is at fault
  std::optional<RecoveryOption> option_taken_;        ///< for the current problem
  StartLayout before_, shrunk_;                       ///< the job's layout before; the planner's layout for fewer nodes
  bool start_failed_ = false;
};

}  // namespace wt
