// What a watch remembers from one of its runs to the next: cordoned nodes, restarts by cause, used spares, and whether
// a human must look first. Stored in decisions.jsonl.
#pragma once
#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "configs/files/resilience.hpp"
#include "planner/watch/alternatives.hpp"
#include "planner/watch/rollback.hpp"
#include "planner/watch/signals.hpp"

namespace wt {

struct CordonedNode {
  double unix_s = 0;
  bool back = false;  ///< seen among the run's nodes since
};

struct CauseCount {
  std::int64_t restarts = 0;
  std::int64_t step = 0;  ///< last step done at the last restart
  bool helped = false;    ///< the last restart helped; the count is dropped once the run is beyond `step`
  std::optional<std::int64_t> back_to = {};  ///< checkpoint step that the last restart went back to
};

/// A start whose effect is to be verified. It is undone if it does not help.
struct StartedTrial {
  WatchSignal signal;  ///< it helped once this signal has ended
  double unix_s = 0;
  std::vector<std::string> excluded;  ///< nodes excluded by this start
  std::optional<RecoveryOption> option;
  std::string layout;  ///< run file before this start
  double step_factor = 1;
};

struct NodeLedger {
  std::map<std::string, CordonedNode> cordoned;
  std::map<std::string, CauseCount> causes;
  std::int64_t spares_used = 0;
  std::string layout;                ///< run file of the job's last start; "" = the run's own
  double step_factor = 1;            ///< WatchBaseline::step_factor of that layout
  std::vector<BatchRange> skipped;   ///< batches skipped by every start since the loss diverged
  std::optional<Rollback> rollback;  ///< decided, not yet performed by a start
  std::string breaker;               ///< why nothing is done until a human resets the breaker; "" = closed
  std::optional<StartedTrial> trial;

  /// Cordoned nodes that are not back.
  std::vector<std::string> excluded() const;
};

void to_json(nlohmann::json& out, const WatchSignal& signal);
/// {"step": 800, "bad_step": 907, "skipped": [[801, 1000]]}
void to_json(nlohmann::json& out, const Rollback& rollback);
/// [801, 1000]: first and last batch.
void to_json(nlohmann::json& out, const BatchRange& range);
void to_json(nlohmann::json& out, const NodeLedger& ledger);
NodeLedger ledger_from_json(const nlohmann::json& document, const std::string& origin);

}  // namespace wt
