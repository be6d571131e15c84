// RUN/decisions.jsonl: one line per decision, with the observation, the rule, the alternatives, the action and its
// result. The next watch continues from the last ledger in it.
#pragma once
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "planner/watch/ladder.hpp"

namespace wt {

/// windtunnel.decision/1. `end`: result of the verdict's action; nullptr without action. `ledger`: nullptr for a watch
/// that only logs, because another watch may act at the same time.
nlohmann::json decision_json(const std::string& run, const WatchVerdict& verdict, const HookEnd* end,
                             const NodeLedger* ledger);

/// Of a run's folder.
std::filesystem::path decisions_file(const std::filesystem::path& run_folder);

/// Appends a line. Throws Error{runtime} if it cannot be written.
void append_decision(const std::filesystem::path& file, const nlohmann::json& decision);

/// The ledger of the last line that has one; else an empty one. An incomplete last line is ignored. Throws Error{usage}
/// naming file and line for anything else that is no decision.
NodeLedger read_ledger(const std::filesystem::path& run_folder);

}  // namespace wt
