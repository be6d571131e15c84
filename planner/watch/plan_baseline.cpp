#include "planner/watch/plan_baseline.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "configs/base/json_reader.hpp"
#include "configs/base/statistics.hpp"
#include "planner/watch/unknown.hpp"
#include "sim/program/timeline_json.hpp"

namespace wt {
namespace {

using nlohmann::json;

/// Median over the last steps; empty unless all have the value.
std::optional<double> last_median(const std::vector<TrainingStep>& steps, std::size_t window,
                                  std::optional<double> TrainingStep::*member) {
  std::vector<double> values;
  for (auto step = steps.end() - static_cast<std::ptrdiff_t>(window); step != steps.end(); ++step)
    if ((*step).*member) values.push_back(*((*step).*member));
  return values.size() == window ? std::optional(median(values)) : std::nullopt;
}

/// Mean over ranks of the wait for input in the median step.
std::optional<double> read_load_batch(const std::filesystem::path& file) {
  if (!std::filesystem::exists(file)) return {};
  const json document = read_json(file);
  std::vector<double> ranks;
  for (const JsonReader& rank : JsonReader(document, file.string()).elements()) {
    double sum = 0;
    for (const OpRecord& op : timeline_from_json(rank.value(), file.string()).ops)
      if (op.id.ends_with(".data")) sum += op.done_s - op.issued_s;
    ranks.push_back(sum);
  }
  return ranks.empty() ? std::nullopt : std::optional(mean(ranks));
}

}  // namespace

PlannedRun read_planned_run(const std::filesystem::path& plan_json) {
  const json document = read_json(plan_json);
  const JsonReader root(document, plan_json.string());
  if (root.at("schema").string() != "windtunnel.plan/1")
    root.at("schema").fail("'" + root.at("schema").string() + "'", "windtunnel.plan/1");
  const JsonReader step = root.at("step");
  PlannedRun out;
  out.name = root.at("study").at("name").string();
  out.gpus = root.at("study").at("gpus").integer();
  out.step_s = step.at("step_s").non_negative();
  if (!(out.step_s > 0)) step.at("step_s").fail("0", "seconds above 0");
  out.low_s = step.at("low_s").non_negative(), out.high_s = step.at("high_s").non_negative();
  if (step.has("mfu") && !step.at("mfu").value().is_null()) out.mfu = step.at("mfu").non_negative();
  out.tokens_per_s = step.at("tokens_per_s_per_gpu").non_negative() * static_cast<double>(out.gpus);
  out.exposed_communication_s = step.at("exposed_communication_s").non_negative();
  out.peak_bytes = root.at("memory").at("peak_bytes").non_negative();
  out.goodput = root.at("finish").at("goodput").non_negative();
  out.imbalance = root.at("routing").at("imbalance_mean").non_negative();
  for (const JsonReader& op : root.at("ops").elements()) {
    const std::string name = op.at("op").string();
    if (name.starts_with("experts.")) out.experts_s += op.at("busy_s").non_negative();
    if (name.starts_with("load_batch.")) out.load_batch_s += op.at("exposed_s").non_negative();
  }
  return out;
}

std::optional<ObservedRun> observe_run(const TrainingObservation& run, const std::filesystem::path& run_folder,
                                       std::size_t window) {
  if (run.steps.size() < window || run.steps.empty()) return {};
  std::vector<double> times;
  double productive_s = 0;
  for (const TrainingStep& step : run.steps) productive_s += step.step_s;
  for (auto step = run.steps.end() - static_cast<std::ptrdiff_t>(window); step != run.steps.end(); ++step)
    times.push_back(step->step_s);
  const double wall_s = run.steps.back().unix_s - (run.steps.front().unix_s - run.steps.front().step_s);
  return ObservedRun{.step_s = median(times),
                     .exposed_communication_s = last_median(run.steps, window, &TrainingStep::exposed_communication_s),
                     .peak_bytes = last_median(run.steps, window, &TrainingStep::peak_tensor_bytes),
                     .imbalance = last_median(run.steps, window, &TrainingStep::expert_imbalance),
                     .load_batch_s = read_load_batch(run_folder / "timeline.json"),
                     .goodput = wall_s > 0 ? std::min(1.0, productive_s / wall_s) : 1};
}

PlanDrift plan_drift(const PlannedRun& plan, const ObservedRun& run) {
  PlanDrift out{plan, run, run.step_s >= plan.low_s && run.step_s <= plan.high_s, {}};
  DriftParts& parts = out.parts;
  parts.step_s = run.step_s - plan.step_s;
  if (run.exposed_communication_s) parts.network_s = *run.exposed_communication_s - plan.exposed_communication_s;
  if (run.imbalance && plan.imbalance > 0) parts.routing_s = plan.experts_s * (*run.imbalance / plan.imbalance - 1);
  if (run.load_batch_s) parts.input_s = *run.load_batch_s - plan.load_batch_s;
  parts.computation_s =
      parts.step_s - parts.network_s.value_or(0) - parts.routing_s.value_or(0) - parts.input_s.value_or(0);
  if (run.goodput > 0 && plan.goodput > 0)
    parts.faults_s = run.step_s * (1 / run.goodput - 1) - plan.step_s * (1 / plan.goodput - 1);
  return out;
}

std::vector<DriftRow> drift_rows(const PlanDrift& d) {
  return {{"step time", d.plan.step_s, d.run.step_s},
          {"exposed communication", d.plan.exposed_communication_s, d.run.exposed_communication_s},
          {"largest expert load", d.plan.imbalance, d.run.imbalance},
          {"waiting for input", d.plan.load_batch_s, d.run.load_batch_s},
          {"memory", d.plan.peak_bytes, d.run.peak_bytes},
          {"goodput", d.plan.goodput, d.run.goodput}};
}

json to_json(const PlanDrift& d) {
  return {{"plan",
           {{"name", d.plan.name},
            {"step_s", d.plan.step_s},
            {"exposed_communication_s", d.plan.exposed_communication_s},
            {"imbalance", d.plan.imbalance},
            {"load_batch_s", d.plan.load_batch_s},
            {"peak_bytes", d.plan.peak_bytes},
            {"goodput", d.plan.goodput}}},
          {"run",
           {{"step_s", d.run.step_s},
            {"exposed_communication_s", or_unknown(d.run.exposed_communication_s)},
            {"imbalance", or_unknown(d.run.imbalance)},
            {"load_batch_s", or_unknown(d.run.load_batch_s)},
            {"peak_bytes", or_unknown(d.run.peak_bytes)},
            {"goodput", d.run.goodput}}},
          {"inside", d.inside},
          {"behind_s",
           {{"step", d.parts.step_s},
            {"computation", d.parts.computation_s},
            {"network", or_unknown(d.parts.network_s)},
            {"routing", or_unknown(d.parts.routing_s)},
            {"input", or_unknown(d.parts.input_s)},
            {"faults", d.parts.faults_s}}}};
}

}  // namespace wt
