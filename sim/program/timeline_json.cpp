#include "sim/program/timeline_json.hpp"

#include <nlohmann/json.hpp>

#include "configs/base/error.hpp"

namespace wt {

using nlohmann::json;

static void to_json(json& out, Lane lane) { out = to_string(lane); }
static void from_json(const json& in, Lane& out) {
  for (std::size_t lane = 0; lane < kLanes; ++lane)
    if (to_string(static_cast<Lane>(lane)) == in) out = static_cast<Lane>(lane);
}
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(OpRecord, id, lane, issued_s, done_s, waited_s, thread_cpu_s, process_cpu_s, rows,
                                   live_bytes, peak_bytes)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(StepTimeline, step, rank, step_s, exposed_s, peak_bytes, ops)

json to_json(const StepTimeline& timeline) { return timeline; }

StepTimeline timeline_from_json(const json& document, const std::string& origin) {
  try {
    return document;
  } catch (const json::exception& e) {
    throw_usage("{}: not a step timeline: {}; needs the timeline.json of a run", origin, e.what());
  }
}

}  // namespace wt
