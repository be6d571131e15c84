// Step timelines as JSON, so that predicted and measured ones can be kept and laid side by side.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "sim/program/timeline.hpp"

namespace wt {

nlohmann::json to_json(const StepTimeline& timeline);
/// Throws Error{usage} naming the origin.
StepTimeline timeline_from_json(const nlohmann::json& document, const std::string& origin);

}  // namespace wt
