// The origin of a report, also printed by `windtunnel --version`.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "reports/model/report.hpp"

namespace wt {

/// For Report::provenance: the command line, version, commit of the source tree ("-dirty" if it was changed), build,
/// and date, followed by `entries`. The commit is asked of git at run time: compiled in, it would need a build per
/// commit.
KeyValues provenance(std::vector<std::pair<std::string, Cell>> entries = {});

/// Version, commit and build of provenance(), one per line.
std::string version_text();

}  // namespace wt
