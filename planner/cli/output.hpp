// Where a subcommand's report goes: text or JSON to standard output, or a file whose ending says the format.
#pragma once
#include <filesystem>
#include <string>

#include "reports/build/provenance.hpp"
#include "reports/report.hpp"

namespace wt {

/// Text (coloured on a terminal) on standard output, or with `json` the report's JSON document and nothing else.
void put_report(const Report& report, bool json);

/// .html, .md, .json or .txt; "-" is text on standard output. Throws Error{usage} for another ending.
void write_report_file(const Report& report, const std::string& file);

/// The folder, created. Throws Error{runtime} where it cannot be.
std::filesystem::path make_folder(const std::string& folder);

}  // namespace wt
