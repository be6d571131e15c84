// What --set and --sweep say: values of dotted keys of a study, its cluster and its model, in place of its own.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "configs/files/study.hpp"

namespace wt {

struct KeyValuesOf {
  std::string key;                  ///< dotted, of the study, its cluster or its model: "cluster.nic.bandwidth"
  std::vector<std::string> values;  ///< YAML
};
/// "key=a,b,c"; commas inside brackets and braces do not split. Throws Error{usage} without a key or a value.
KeyValuesOf parse_assignment(const std::string& text, bool several);

using Assignments = std::vector<std::pair<std::string, std::string>>;  ///< key and value
Assignments assignments_of(const std::vector<KeyValuesOf>& settings);  ///< the first value of each

/// The study that these assignments make of the text. Throws Error{usage} for a key that study, cluster and model do
/// not have, with the nearest one and its file, and for values that they do not take.
StudySpec assigned_study(const std::string& text, const std::string& origin, const Assignments& assignments);

}  // namespace wt
