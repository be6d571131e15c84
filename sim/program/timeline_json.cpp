#include "sim/program/timeline_json.hpp"

#include <nlohmann/json.hpp>

#include "configs/base/error.hpp"

namespace wt {

using nlohmann::json;

json to_json(const StepTimeline& t) {
  json ops = json::array();
  for (const OpRecord& r : t.ops)
    ops.push_back({{"id", r.id},
                   {"lane", to_string(r.lane)},
                   {"issued_s", r.issued_s},
                   {"done_s", r.done_s},
                   {"waited_s", r.waited_s},
                   {"thread_cpu_s", r.thread_cpu_s},
                   {"process_cpu_s", r.process_cpu_s},
                   {"rows", r.rows},
                   {"live_bytes", r.live_bytes},
                   {"peak_bytes", r.peak_bytes}});
  return {{"step", t.step},
          {"rank", t.rank},
          {"step_s", t.step_s},
          {"exposed_s", t.exposed_s},
          {"peak_bytes", t.peak_bytes},
          {"ops", ops}};
}

StepTimeline timeline_from_json(const json& document, const std::string& origin) {
  StepTimeline t;
  try {
    t.step = document.at("step"), t.rank = document.at("rank"), t.step_s = document.at("step_s");
    t.exposed_s = document.at("exposed_s"), t.peak_bytes = document.at("peak_bytes");
    for (const json& o : document.at("ops")) {
      OpRecord r;
      r.id = o.at("id");
      for (std::size_t lane = 0; lane < kLanes; ++lane)
        if (to_string(static_cast<Lane>(lane)) == o.at("lane")) r.lane = static_cast<Lane>(lane);
      r.issued_s = o.at("issued_s"), r.done_s = o.at("done_s"), r.waited_s = o.at("waited_s");
      r.thread_cpu_s = o.at("thread_cpu_s"), r.process_cpu_s = o.at("process_cpu_s"), r.rows = o.at("rows");
      r.live_bytes = o.at("live_bytes"), r.peak_bytes = o.at("peak_bytes");
      t.ops.push_back(std::move(r));
    }
  } catch (const json::exception& e) {
    throw_usage("{}: not a step timeline: {}; needs the timeline.json of a run", origin, e.what());
  }
  return t;
}

}  // namespace wt
