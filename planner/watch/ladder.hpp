// What to do about a run in trouble, one action after the other: save, stop, sweep, sweep again, cordon, start, verify,
// undo. Pure: what was seen and how each action ended go in, the next action comes out; the time is given. It asks for
// an action and waits for its end (ended()) before it is shown the run again (look()).
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

/// A run as it is at one time.
struct Sight {
  double now_unix_s = 0;
  std::vector<WatchSignal> signals = {};
  Diagnosis diagnosis = {};  ///< of interest where there are signals
  std::int64_t step = 0;     ///< the last one that is done
  bool ended = false;
  std::optional<WayBack> way_back = {};  ///< of interest where the loss is lost; none = not known any more
  std::optional<bool> mended = {};       ///< while it is verified: RunSignals::mended of verifies()
};

/// One action, with what it stands for.
struct WatchAction {
  HookKind hook = HookKind::tell;
  std::string node = {};
  std::string layout = {};  ///< of a start: its run file, "" = the run's own
  double step_factor = 1;   ///< of that layout
  std::vector<std::string> excluded = {};
  std::optional<Rollback> rollback = {};  ///< of a start that goes back
  std::vector<BatchRange> skipped = {};   ///< of a start: all batches that the watch has it leave out
};

/// What was decided. Without an action nobody is touched.
struct WatchVerdict {
  double unix_s = 0;
  std::string why = {};
  std::vector<WatchSignal> signals = {};
  std::optional<Diagnosis> diagnosis = {};
  std::vector<Alternative> alternatives = {};
  std::optional<Way> way = {};  ///< that of them which is taken
  std::optional<WatchAction> action = {};
};

/// How an action ended.
struct ActionEnd {
  double unix_s = 0;
  HookEnd end = {};
  HealthVerdict sweep = {};  ///< of a sweep that answered
};

class Ladder {
 public:
  /// `acts`: else it says what it would do.
  Ladder(WatchRules rules, std::int64_t spares, bool acts, AskPlanner ask, NodeLedger ledger);

  std::optional<WatchVerdict> look(const Sight& sight);
  /// The action of the last verdict has ended. The next one, if there is any.
  std::optional<WatchVerdict> ended(const ActionEnd& end);

  /// The signal whose end is waited for, and since when; none unless a start is to be verified.
  std::optional<std::pair<WatchSignal, double>> verifies() const;
  const NodeLedger& ledger() const { return ledger_; }
  /// Whether one of them was not dealt with yet: then look() wants a diagnosis.
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
  std::optional<WatchVerdict> verify(const Sight& sight);
  void forget_causes(const Sight& sight);
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
  void take_back();
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

  Sight sight_;                 ///< what the present trouble began with
  std::set<std::string> held_;  ///< rules that were dealt with and have not gone silent since
  std::deque<Planned> planned_;
  std::optional<WatchAction> running_;
  std::vector<Alternative> alternatives_;  ///< of the next verdict
  std::optional<Way> way_;
  std::optional<std::set<std::string>> first_sweep_;  ///< guilty in the first of two
  std::int64_t nodes_ = 0;                            ///< of the run, with those that are excluded; 0 = not known yet
  std::vector<std::string> excluded_now_;             ///< by the present trouble
  std::map<std::string, std::string> reasons_;        ///< what is held against a node
  std::optional<Way> taken_;                          ///< how the present trouble was met
  StartLayout before_, shrunk_;                       ///< what the job ran with, what the planner has for fewer nodes
  bool start_failed_ = false;
};

}  // namespace wt
