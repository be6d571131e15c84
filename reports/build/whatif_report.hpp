// What-ifs as a table for people and a document for machines.
#pragma once
#include <nlohmann/json_fwd.hpp>

#include "planner/whatif/whatif.hpp"
#include "reports/report.hpp"

namespace wt {

Table what_if_table(const WhatIf& result);
/// What the rows rest on, a sentence each; one that is not of all rows names its own.
std::vector<std::string> what_if_notes(const WhatIf& result);
/// Schema "windtunnel.whatif/1".
nlohmann::json what_if_json(const WhatIf& result);

}  // namespace wt
