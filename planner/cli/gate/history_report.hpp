// A gate history as a report: what changed, behind which commits, and a chart a series.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "bench/gate/history_alerts.hpp"
#include "bench/gate/history_selftest.hpp"
#include "reports/model/report.hpp"

namespace wt {

/// Every shift of every series, worst first; charts of the series that changed, then of others, up to so many in all.
/// The payload (schema "windtunnel.gate-history-report/1") has every point, also those left out and why.
Report history_report(const History& history, const HistoryJudgement& judgement, std::size_t most_charts = 40);

/// What is new, one line each: "slower  +5.2 %  gemm/...  behind a1b2c3..d4e5f6 (2026-11-02)".
std::string new_alerts_text(const HistoryJudgement& judgement);

std::string history_selftest_text(const HistorySelftest& result);
nlohmann::json history_selftest_json(const HistorySelftest& result);

}  // namespace wt
