// The gate's comment on a pull request: only findings, or nothing.
#pragma once
#include <string>

#include "bench/gate/gate.hpp"

namespace wt {

/// Markdown: regressions first with change and interval, then improvements, and the command that measures again. ""
/// when there are neither. At most 100 rows and the number of others, because a comment holds 65,536 characters.
std::string gate_comment(const GateResult& result);

}  // namespace wt
