#include "planner/plan/smaller_plan.hpp"

#include <fmt/core.h>

#include "configs/base/error.hpp"
#include "configs/files/study_keys.hpp"

namespace wt {

RunOnFewer plan_on_fewer(const std::string& study, const std::string& origin, std::int64_t gpus, bool allow_assumed) {
  // Only the layout and its step are needed; these do not depend on the number of simulated runs.
  const std::string text =
      set_study_key(set_study_key(study, "gpus", std::to_string(gpus), origin), "runs", "1", origin);
  const PlanInputs inputs = read_plan_inputs(study_from_text(text, origin), allow_assumed);
  const Plan plan = make_plan(inputs);
  return {plan_run(inputs, plan), plan.step.step_s};
}

std::vector<SmallerLayout> smaller_layouts(const StudySpec& study, std::int64_t sizes, bool allow_assumed,
                                           const std::function<void(const std::string&)>& said) {
  const std::string text = study_yaml(study);
  std::vector<SmallerLayout> out;
  std::int64_t gpus = study.gpus;
  for (std::int64_t size = 0; size < sizes; ++size) {
    gpus = usable_gpus(gpus - 1, study.cluster.gpus_per_node, study.global_batch);
    if (gpus <= 0) break;
    try {
      const RunOnFewer fewer = plan_on_fewer(text, study.name, gpus, allow_assumed);
      out.push_back({fewer.run.layout, fewer.step_s});
    } catch (const Error& e) {
      said(fmt::format("no layout on {} GPUs: {}", gpus, e.what()));
    }
  }
  return out;
}

}  // namespace wt
