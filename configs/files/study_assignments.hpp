// Values of --set and --sweep: they replace dotted keys of a study, its cluster or its model.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "configs/files/study.hpp"

namespace wt {

struct KeyValuesOf {
  std::string key;                  ///< dotted: "cluster.nic.bandwidth"
  std::vector<std::string> values;  ///< YAML
};
/// "key=a,b,c"; commas inside brackets and braces do not split. Throws Error{usage} without a key or a value.
KeyValuesOf parse_assignment(const std::string& text, bool several);

using Assignments = std::vector<std::pair<std::string, std::string>>;  ///< key and value
Assignments assignments_of(const std::vector<KeyValuesOf>& settings);  ///< the first value of each

/// The study with these assignments applied to its text. Throws Error{usage} for a key that neither study, cluster nor
/// model has, with the nearest key and its file, and for invalid values.
StudySpec assigned_study(const std::string& text, const std::string& origin, const Assignments& assignments);

}  // namespace wt
