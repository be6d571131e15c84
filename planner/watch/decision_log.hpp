// RUN/decisions.jsonl: one line a decision, with what was seen, which rule fired, what else could have been done, what
// was done and how it ended. The last ledger is where the next watch goes on.
#pragma once
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "planner/watch/ladder.hpp"

namespace wt {

/// windtunnel.decision/1. `end`: of the verdict's action; null where there was none. `ledger`: null of a watch that
/// only logs, beside which another one may act.
nlohmann::json decision_json(const std::string& run, const WatchVerdict& verdict, const HookEnd* end,
                             const NodeLedger* ledger);

/// Adds a line. Throws Error{runtime} where it cannot be written.
void append_decision(const std::filesystem::path& run_folder, const nlohmann::json& decision);

/// The ledger of the last line that has one; else an empty one. A half-written last line is passed over. Throws
/// Error{usage} naming file and line for anything else that is no decision.
NodeLedger read_ledger(const std::filesystem::path& run_folder);

}  // namespace wt
