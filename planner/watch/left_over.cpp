#include "planner/watch/left_over.hpp"

#include <fmt/core.h>

#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "configs/base/atomic_file.hpp"
#include "configs/base/error.hpp"
#include "configs/base/json_reader.hpp"
#include "configs/base/text.hpp"
#include "configs/files/failures.hpp"
#include "planner/plan/smaller_plan.hpp"

namespace wt {
namespace {

struct Shrunk {
  std::optional<double> step_s;  ///< empty = no layout fits
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
    const std::int64_t gpus = usable_gpus((cluster.nodes - question.nodes_lost) * cluster.gpus_per_node,
                                          cluster.gpus_per_node, study_.global_batch);
    if (gpus <= 0) return out;
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
      const RunOnFewer plan = plan_on_fewer(text_, study_file_.string(), gpus, true);
      const std::filesystem::path file = folder_ / fmt::format("layout-{}.yaml", gpus);
      write_file_atomically(file, run_to_yaml(in_layout_of(plan.run)));
      out = {plan.step_s, file.string()};
    } catch (const Error& e) {
      said_(fmt::format("no layout on {} GPUs: {}", gpus, e.what()));
    }
    return out;
  }

  /// Data, optimizer and saves are those of the run's run.yaml, if our trainer wrote one; else the plan's.
  RunSpec in_layout_of(const RunSpec& planned) const {
    const std::filesystem::path own = folder_ / "run.yaml";
    if (!std::filesystem::exists(own)) return planned;
    RunSpec run = planned;
    try {
      run = read_run(own);
    } catch (const Error&) {
      return planned;
    }
    run.layout = planned.layout;
    check_run(run, own.string());
    return run;
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

AskPlanner planner_of(const std::filesystem::path& plan_json, const std::filesystem::path& folder,
                      const std::function<void(const std::string&)>& said) {
  const auto left_over = std::make_shared<LeftOver>(plan_json, folder, said);
  return [left_over](const LossQuestion& question) { return left_over->answer(question); };
}

}  // namespace wt
