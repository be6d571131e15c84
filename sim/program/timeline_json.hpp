// Step timelines as JSON, to store and compare predicted and measured ones.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "sim/program/timeline.hpp"

namespace wt {

nlohmann::json to_json(const StepTimeline& timeline);
/// Throws Error{usage} naming `origin`.
StepTimeline timeline_from_json(const nlohmann::json& document, const std::string& origin);

}  // namespace wt
