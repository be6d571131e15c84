// Formats one number for the gate's text and Markdown tables.
#pragma once
#include <optional>
#include <string>

#include "bench/gate/gate.hpp"

namespace wt {

/// "1.234 ms" for seconds, "12.3 tokens/s" for others, "-" without a value.
std::string gate_value(const std::optional<double>& value, const std::string& unit);
/// "+5.2 %" for a ratio of 1.052, "-" without one.
std::string gate_change(const std::optional<double>& ratio);
/// "[+3.9 %, +6.1 %]", or "-".
std::string gate_interval(const GateRow& row);
/// The floors of a finding: "more than 3 % and more than 5 us".
std::string gate_floors(const GateOptions& options);
/// "9/9" samples; "adjusted p" as "4.1e-05".
std::string gate_samples(const GateRow& row);
std::string gate_p(const std::optional<double>& p);
/// The reason, and for inconclusive rows how many samples would help.
std::string gate_reason(const GateRow& row);

}  // namespace wt
