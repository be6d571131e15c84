// The gate's result in the formats that people and CI read. Everything is drawn from GateResult; nothing is decided
// here.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "bench/gate/gate.hpp"
#include "bench/gate/selftest.hpp"

namespace wt {

/// The sentence, then a table, worst first; benchmarks that are the same or new are only counted unless `all`.
std::string gate_text(const GateResult& result, bool all = false);
/// Every number of every row (schema "windtunnel.gate/1"); what does not apply is null.
nlohmann::json gate_json(const GateResult& result);
/// For a pull request: the sentence, findings worst first, everything else in a fold. No row is left out.
std::string gate_markdown(const GateResult& result);
/// One testcase a benchmark. failure: slower ("regression") and missing; error: incomparable and failed; skipped:
/// inconclusive, and missing where allowed.
std::string gate_junit(const GateResult& result);

std::string selftest_text(const SelftestResult& result);
nlohmann::json selftest_json(const SelftestResult& result);

}  // namespace wt
