// What-ifs as a table for people, a document for machines, and a report that compares the rows.
#pragma once
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "planner/whatif/whatif.hpp"
#include "reports/model/report.hpp"

namespace wt {

/// The row with the fewest days, and how many fewer they are than those of the first row with a plan: "tiny:
/// gpus=32 takes 3.1 days less than 16 (2.2 to 5.0 less in 90 % of paired runs): 3.4 in place of 6.5."
std::string what_if_answer(const WhatIf& result);
Table what_if_table(const WhatIf& result);
/// "cluster=hgx-b200, gpus=32": the swept values of a row.
std::string values_of(const WhatIf& result, const WhatIfRow& row);
/// Sentences on the basis of the rows; one that does not apply to all rows names its own.
std::vector<std::string> what_if_notes(const WhatIf& result);
/// Schema "windtunnel.whatif/1".
nlohmann::json what_if_json(const WhatIf& result);

/// Charts of the paired differences and of the days: for two swept numeric keys a grid, for more keys their rank
/// correlations with days.
/// With all columns of the table.
Report what_if_report(const WhatIf& result);
/// One line per row: swept values, then figures in SI units named as in what_if_json; empty where nothing fits.
std::string what_if_csv(const WhatIf& result);
/// Writes whatif.html, .md, .json and .csv; creates the folder. Returns the files.
std::vector<std::filesystem::path> write_what_if(const WhatIf& result, const std::filesystem::path& folder);

}  // namespace wt
