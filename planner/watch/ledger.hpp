// What a watch must not forget between two of its own runs: nodes that it cordoned, restarts for each cause, spares
// that are used, whether a human has to look first. Read back from decisions.jsonl.
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
  bool back = false;  ///< it was seen among the run's nodes since
};

struct CauseCount {
  std::int64_t restarts = 0;
  std::int64_t step = 0;                     ///< done at the last of them
  bool helped = false;                       ///< the last of them; it is forgotten once the run is beyond that step
  std::optional<std::int64_t> back_to = {};  ///< step of the checkpoint that the last of them went back to
};

/// A start that is verified: what is undone where it does not help.
struct StartedTrial {
  WatchSignal signal;  ///< whose end is waited for
  double unix_s = 0;
  std::vector<std::string> excluded;  ///< by this start
  std::optional<Way> way;
  std::string layout;  ///< what the job ran with before
  double step_factor = 1;
};

struct NodeLedger {
  std::map<std::string, CordonedNode> cordoned;
  std::map<std::string, CauseCount> causes;
  std::int64_t spares_used = 0;
  std::string layout;                ///< that the job was last started with; "" = its own
  double step_factor = 1;            ///< WatchBaseline::step_factor of that layout
  std::vector<BatchRange> skipped;   ///< left out by every start since a loss was lost
  std::optional<Rollback> rollback;  ///< decided, and not done yet by a start
  std::string breaker;               ///< why nothing is done until a human resets it; "" = closed
  std::optional<StartedTrial> trial;

  /// Nodes that are cordoned and not back.
  std::vector<std::string> excluded() const;
};

nlohmann::json to_json(const WatchSignal& signal);
/// {"step": 800, "bad_step": 907, "skipped": [[801, 1000]]}
nlohmann::json to_json(const Rollback& rollback);
/// [[801, 1000], ...]: first and last of each.
nlohmann::json to_json(const std::vector<BatchRange>& ranges);
nlohmann::json to_json(const NodeLedger& ledger);
NodeLedger ledger_from_json(const nlohmann::json& document, const std::string& origin);

}  // namespace wt
