// What `windtunnel validate plans` prints.
#pragma once
#include <string>
#include <vector>

#include "planner/validate/published_plans.hpp"
#include "reports/model/report.hpp"

namespace wt {

/// {schema, file, plans: [{run, model, gpus, gpu, stack, source, origin, good, layouts, inside, differences: [{axis,
/// found, nearest}], published_s, step: {...}, ours: {...}, faster, clearly_faster, proved, gap}], summary}. `step` and
/// `ours`: layout, recompute, microbatch, predicted_s, interval80_s, memory_bytes and terms_s. Times in seconds, shares
/// as fractions.
nlohmann::json published_plans_json(const std::vector<PlanBeside>& plans, const std::string& file);

Report published_plans_report(const std::vector<PlanBeside>& plans, const std::string& file);

}  // namespace wt
