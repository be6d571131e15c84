// A report into files, each whole or not at all.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "reports/model/report.hpp"

namespace wt {

/// Writes basename.html, .json and .md; the folder is created. Returns the files. Everything is drawn before the first
/// file is written. Throws Error{runtime} naming the file, Error{usage} for a basename that is empty or a path.
std::vector<std::filesystem::path> write_report(const Report& report, const std::filesystem::path& folder,
                                                const std::string& basename);

}  // namespace wt
