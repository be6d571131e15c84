// Where a report comes from, and the same in words for `windtunnel --version`.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "reports/model/report.hpp"

namespace wt {

/// For Report::provenance: the command as it was typed, version, commit of the source tree ("-dirty" where it was
/// changed), how this program was built, and date; then the entries given. The commit is asked of git when it is
/// needed: compiled in, it would cost a build at each commit.
KeyValues provenance(std::vector<std::pair<std::string, Cell>> entries = {});

/// Version, commit and build of provenance(), a line each.
std::string version_text();

}  // namespace wt
