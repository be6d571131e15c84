// What a gate says under a pull request: findings alone, or nothing.
#pragma once
#include <string>

#include "bench/gate/gate.hpp"

namespace wt {

/// Markdown: regressions first with change and interval, then what became faster, and the command that measures it
/// again. "" when there is neither. At most 100 rows, and it says how many more; a forge takes 65,536 characters.
std::string gate_comment(const GateResult& result);

}  // namespace wt
