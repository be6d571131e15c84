// What-ifs as a table for people, a document for machines, and a report that compares the rows.
#pragma once
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "planner/whatif/whatif.hpp"
#include "reports/model/report.hpp"

namespace wt {

Table what_if_table(const WhatIf& result);
/// Sentences on the basis of the rows; one that does not apply to all rows names its own.
std::vector<std::string> what_if_notes(const WhatIf& result);
/// Schema "windtunnel.whatif/1".
nlohmann::json what_if_json(const WhatIf& result);

/// Days of every row as a chart: for two swept numeric keys a grid, for more keys their rank correlations with days.
/// With all columns of the table.
Report what_if_report(const WhatIf& result);
/// One line per row: swept values, then figures in SI units named as in what_if_json; empty where nothing fits.
std::string what_if_csv(const WhatIf& result);
/// Writes whatif.html, .md, .json and .csv; creates the folder. Returns the files.
std::vector<std::filesystem::path> write_what_if(const WhatIf& result, const std::filesystem::path& folder);

}  // namespace wt
