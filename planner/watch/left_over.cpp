#include "planner/watch/left_over.hpp"

#include <fmt/core.h>

#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "configs/spec/failures.hpp"
#include "configs/spec/study_keys.hpp"
#include "configs/spec/support/atomic_file.hpp"
#include "configs/spec/support/error.hpp"
#include "configs/spec/support/json_reader.hpp"
#include "configs/spec/support/text.hpp"
#include "planner/plan/plan.hpp"

namespace wt {
namespace {

struct Shrunk {
  std::optional<double> step_s;  ///< none = nothing fits
  std::string layout;
};

class LeftOver {
 public:
  LeftOver(const std::filesystem::path& plan_json, const std::filesystem::path& folder,
           std::function<void(const std::string&)> said)
      : study_file_(plan_json.parent_path() / "study.yaml"),
        text_(read_file(study_file_, "the study of the plan, which windtunnel plan -o writes beside plan.json")),
        study_(study_from_text(text_, study_file_.string())),
        failures_(failures_of(study_, study_.failures)),
        folder_(std::filesystem::absolute(folder)),
        said_(std::move(said)) {
    const nlohmann::json document = read_json(plan_json);
    const JsonReader root(document, plan_json.string());
    step_s_ = root.at("step").at("step_s").non_negative();
    reload_s_ = root.at("cadence").at("reload_s").at("value").non_negative();
  }

  LossFigures answer(const LossQuestion& question) {
    LossFigures out;
    out.restart_s = failures_.recovery.reschedule_s.value + failures_.recovery.restart_s.value + reload_s_;
    out.repair_s = study_.repair_s;
    out.remaining_s = static_cast<double>(std::max<std::int64_t>(0, study_.steps() - question.step)) * step_s_;
    out.slow_factor = question.slow_factor;
    const ClusterSpec& cluster = study_.cluster;
    const std::int64_t gpus =
        usable_gpus(cluster.nodes - question.nodes_lost, cluster.gpus_per_node, study_.global_batch);
    if (gpus == 0) return out;
    const Shrunk& shrunk = plan_on(gpus);
    if (shrunk.step_s) out.shrunk_factor = std::max(1.0, *shrunk.step_s / step_s_), out.shrunk_layout = shrunk.layout;
    return out;
  }

 private:
  const Shrunk& plan_on(std::int64_t gpus) {
    if (const auto known = planned_.find(gpus); known != planned_.end()) return known->second;
    Shrunk& out = planned_[gpus];
    said_(fmt::format("planning on {} GPUs", gpus));
    try {
      // Only the layout and its step are wanted, and one simulated run gives no other.
      const std::string text = set_study_key(set_study_key(text_, "gpus", std::to_string(gpus), study_file_.string()),
                                             "runs", "1", study_file_.string());
      const PlanInputs inputs = read_plan_inputs(study_from_text(text, study_file_.string()), true);
      const Plan plan = make_plan(inputs);
      const std::filesystem::path file = folder_ / fmt::format("layout-{}.yaml", gpus);
      write_file_atomically(file, run_to_yaml(plan_run(inputs, plan)));
      out = {plan.step.step_s, file.string()};
    } catch (const Error& e) {
      said_(fmt::format("no layout on {} GPUs: {}", gpus, e.what()));
    }
    return out;
  }

  std::filesystem::path study_file_;
  std::string text_;
  StudySpec study_;
  FailurePreset failures_;
  std::filesystem::path folder_;
  std::function<void(const std::string&)> said_;
  double step_s_ = 0, reload_s_ = 0;
  std::map<std::int64_t, Shrunk> planned_;
};

}  // namespace

std::int64_t usable_gpus(std::int64_t nodes, std::int64_t gpus_per_node, std::int64_t global_batch) {
  for (std::int64_t gpus = nodes * gpus_per_node; gpus > 0; gpus -= gpus_per_node)
    if (global_batch % gpus == 0) return gpus;
  return 0;
}

AskPlanner planner_of(const std::filesystem::path& plan_json, const std::filesystem::path& folder,
                      const std::function<void(const std::string&)>& said) {
  const auto left_over = std::make_shared<LeftOver>(plan_json, folder, said);
  return [left_over](const LossQuestion& question) { return left_over->answer(question); };
}

}  // namespace wt
