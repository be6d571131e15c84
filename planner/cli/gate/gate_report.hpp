// The gate's result in formats for people and CI. These functions only format a GateResult; they decide nothing.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "bench/gate/gate.hpp"
#include "bench/gate/selftest.hpp"
#include "reports/render/text_report.hpp"

namespace wt {

/// The sentence, then a table, worst first. Benchmarks that are the same or new are only counted unless `all`.
std::string gate_text(const GateResult& result, bool all = false, const TextOptions& options = {});
/// Every number of every row (schema "windtunnel.gate/1"); inapplicable values are null.
nlohmann::json gate_json(const GateResult& result);
/// For a pull request: the sentence, findings worst first, everything else folded. It contains all rows.
std::string gate_markdown(const GateResult& result);
/// One testcase per benchmark. failure: slower ("regression") and missing; error: incomparable and failed; skipped:
/// inconclusive, and missing where allowed.
std::string gate_junit(const GateResult& result);
/// The comment on a pull request, in Markdown: regressions first with change and interval, then improvements, and the
/// command that measures again. "" when there are neither. At most 100 rows and the number of others, because a comment
/// holds 65,536 characters.
std::string gate_comment(const GateResult& result);

std::string selftest_text(const SelftestResult& result);
nlohmann::json selftest_json(const SelftestResult& result);

}  // namespace wt
