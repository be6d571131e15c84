// A gate history as a report: the changes, the commits that may have caused them, and a chart per series.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "bench/gate/history_alerts.hpp"
#include "bench/gate/history_selftest.hpp"
#include "reports/model/report.hpp"

namespace wt {

/// All shifts of all series, worst first; then charts, of changed series first, up to `most_charts`. The payload
/// (schema "windtunnel.gate-history-report/1") has every point, including the rejected ones with reasons.
Report history_report(const History& history, const HistoryJudgement& judgement, std::size_t most_charts = 40);

/// The new alerts, one per line: "slower  +5.2 %  gemm/...  behind a1b2c3..d4e5f6 (2026-11-02)".
std::string new_alerts_text(const HistoryJudgement& judgement);

std::string history_selftest_text(const HistorySelftest& result);
nlohmann::json history_selftest_json(const HistorySelftest& result);

}  // namespace wt
