// Where a subcommand's report goes: text or JSON to standard output, or a file whose ending says the format.
#pragma once
#include <filesystem>
#include <string>

#include "planner/cli/parts/provenance.hpp"
#include "reports/model/report.hpp"

namespace wt {

/// Text (coloured on a terminal) on standard output, or with `json` the report's JSON document and nothing else.
void put_report(const Report& report, bool json);

/// Throws Error{usage} for a name that write_report_file would refuse: asked before the work, so that no result is
/// lost.
void check_report_file(const std::string& file);
/// .html, .md, .json or .txt; "-" is text on standard output. Throws Error{usage} for another ending.
void write_report_file(const Report& report, const std::string& file);

/// The folder, created. Throws Error{runtime} where it cannot be, or where no file can be written into it.
std::filesystem::path make_folder(const std::string& folder);

}  // namespace wt
