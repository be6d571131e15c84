// Writes a subcommand's report: text or JSON to standard output, or a file whose ending gives the format.
#pragma once
#include <filesystem>
#include <string>

#include "planner/cli/parts/provenance.hpp"
#include "reports/model/report.hpp"

namespace wt {

/// Text (coloured on a terminal) to standard output; with `json` only the report's JSON document.
void put_report(const Report& report, bool json);

/// A table for standard output: on a terminal coloured, and folded to its width.
std::string shown_table(const Table& table);

/// Throws Error{usage} for a name that write_report_file would refuse. Call it before the work, so that no result is
/// lost.
void check_report_file(const std::string& file);
/// .html, .md, .json or .txt; "-" is text on standard output. Throws Error{usage} for another ending.
void write_report_file(const Report& report, const std::string& file);

/// Creates the folder. Throws Error{runtime} where that fails, or no file can be written into it.
std::filesystem::path make_folder(const std::string& folder);

}  // namespace wt
