// Writes a report to files, each atomically.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "reports/model/report.hpp"

namespace wt {

/// Writes basename.html, .json and .md to the folder, which is created, and returns the files. Everything is rendered
/// before the first file is written. Throws Error{runtime} with the file, Error{usage} for an empty basename or a path.
std::vector<std::filesystem::path> write_report(const Report& report, const std::filesystem::path& folder,
                                                const std::string& basename);

}  // namespace wt
