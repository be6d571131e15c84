// Writes a plan to files: a run file for the trainer, a document for machines, and the report.
#include <filesystem>

#include "configs/base/atomic_file.hpp"
#include "configs/base/enum_words.hpp"
#include "configs/base/error.hpp"
#include "configs/base/json_members.hpp"
#include "configs/base/quantity.hpp"
#include "configs/files/layout_words.hpp"
#include "planner/cli/parts/json_parts.hpp"
#include "planner/cli/parts/memory_tables.hpp"
#include "planner/cli/plan/cost_report.hpp"
#include "planner/cli/plan/plan_report.hpp"
#include "planner/cli/plan/policy_report.hpp"
#include "reports/render/write.hpp"
#include "sim/cost/kernels/machine_data.hpp"

namespace wt {

using nlohmann::json;

static void to_json(json& out, const SourcedNumber& n) {
  out = {{"value", n.value}, {"evidence", to_string(n.evidence.kind)}, {"source", n.evidence.source}};
}
WT_TO_JSON(RunDistribution, runs, finished, p50_s, p90_s, p95_s, mean_s, goodput, failures)
WT_TO_JSON(PresetRow, name, mtbf_s, interval_s, goodput, days)
WT_TO_JSON(Certificate, bound, incumbent, unit, gap, proved, ties_complete, enumerated, infeasible, bounded, simulated,
           violations)

static void to_json(json& out, const Layout& l) {
  out = {{"replicate", l.replicate},
         {"shard", l.shard},
         {"expert", l.expert},
         {"microbatch", l.microbatch},
         {"recompute", to_string(l.recompute)},
         {"placed", !l.placement.empty()}};
}
static void to_json(json& out, const ReplacementOption& o) {
  out = {{"every_steps", o.every_steps}, {"moves", o.moves},   {"imbalance", o.load},
         {"step_s", o.step_s},           {"move_s", o.move_s}, {"step_with_moves_s", o.with_moves_s}};
}
/// Mean times of the critical rank's ops, named as a machine model's ops ("attention.fwd/dense").
static void to_json(json& out, const OpClassTotal& t) {
  out = {{"op", to_string(OpKey{t.action, t.direction, t.group})},
         {"count", t.count},
         {"busy_s", t.busy_s},
         {"exposed_s", t.exposed_s}};
}
static void to_json(json& out, const Simulated& s) {
  out = {{"step_s", s.step_s},
         {"low_s", s.low_s},
         {"high_s", s.high_s},
         {"exposed_communication_s", s.exposed_s},
         {"slowed_by_communication_s", s.slowed_s},
         {"tokens_per_s_per_gpu", s.tokens_per_s_per_gpu},
         {"evidence", evidence_json(s.evidence)},
         {"mfu", s.mfu > 0 ? json(s.mfu) : json(nullptr)}};
}
static void to_json(json& out, Fate fate) { out = word_for(fate, std::array{"infeasible", "bounded", "simulated"}); }
static void to_json(json& out, const Candidate& c) {
  out = {{"layout", c.layout}, {"fate", c.fate}};
  if (c.fate == Fate::infeasible) out["reason"] = c.reason;
  if (c.memory_bytes > 0) out["memory_bytes"] = c.memory_bytes;
  if (c.fate != Fate::infeasible) {
    out["microbatches"] = c.microbatches;
    out["bound_s"] = c.bound_s;
  }
  if (c.result) out["step"] = *c.result;
}
static void to_json(json& out, const SmallerLayout& each) {
  out = {{"gpus", each.layout.world()}, {"layout", each.layout}, {"step_s", each.step_s}};
}
static void to_json(json& out, const TimedClass& e) {
  out = {{"class", e.name}, {"share", e.share}, {"points", e.points}, {"source", e.source}};
}

namespace {

json study_json(const StudySpec& s) {
  return {{"name", s.name},
          {"model", s.model.name},
          {"cluster", s.cluster.name},
          {"gpus", s.gpus},
          {"tokens", s.tokens},
          {"max_seq_len", s.seq},
          {"global_train_batch_size", s.global_batch},
          {"profiles", s.profiles},
          {"stack", s.stack.empty() ? json() : json(s.stack)},
          {"routing", s.routing},
          {"failures", s.failures},
          {"seed", s.seed}};
}

json cadence_json(const RunSchedule& schedule) {
  return {{"interval_steps", schedule.cadence.interval_steps},
          {"interval_s", schedule.cadence.interval_s},
          {"goodput", schedule.cadence.goodput},
          {"blocking_s", schedule.input.blocking_s},
          {"persist_s", schedule.input.persist_s},
          {"reload_s", schedule.input.recovery.reload_s},
          {"mtbf_s", schedule.input.mtbf_s},
          {"spares", schedule.cadence.spares},
          {"persist_bound", schedule.cadence.persist_bound}};
}

/// Disturbances of the study other than failures, each with its mean number in a run.
json disturbances_json(const PlanInputs& inputs, const CadenceInput& input, const RunDistribution& runs) {
  const StudySpec& s = inputs.study;
  json out = json::object();
  if (const auto& slow = input.stragglers)
    out["stragglers"] = {{"preset", s.stragglers},           {"per_1000_node_days", slow->onset.per_1000_node_days},
                         {"step_factor", slow->step_factor}, {"duration_s", slow->duration_s},
                         {"exchanged", slow->exchanged},     {"a_run", runs.stragglers}};
  if (s.maintenance.every_s > 0)
    out["maintenance"] = {
        {"every_s", s.maintenance.every_s}, {"duration_s", s.maintenance.duration_s}, {"a_run", runs.planned_stops}};
  if (const LocalCheckpoints& local = input.local; local.interval_steps > 0)
    out["local_checkpoints"] = {{"interval_steps", local.interval_steps},
                                {"blocking_s", local.blocking_s},
                                {"reload_s", local.reload_s},
                                {"survival", SourcedNumber{local.survival, s.checkpoint.local_evidence}}};
  else if (s.checkpoint.local_every_s > 0)  // without effect: not shorter than the interval between saves
    out["local_checkpoints"] = {{"left_out", true}, {"every_s", s.checkpoint.local_every_s}};
  if (inputs.silent_errors) {
    out["silent_errors"] = {{"preset", s.silent_errors.rate},
                            {"per_1000_node_days", inputs.silent_errors->per_1000_node_days}};
    if (input.silent.mean_s > 0)
      out["silent_errors"].update({{"verify_s", SourcedNumber{s.silent_errors.verify_s, s.silent_errors.evidence}},
                                   {"a_run", runs.silent_errors}});
    else
      out["silent_errors"]["found_after_s"] = s.silent_errors.found_after_s;
  }
  if (const ReplicaTolerance& t = input.tolerance; t.replicas > 0)
    out["replica_loss"] = {{"replicas", t.replicas},
                           {"recover_s", SourcedNumber{t.recover_s, s.replica_loss.evidence}},
                           {"stall_s", SourcedNumber{t.stall_s, s.replica_loss.evidence}},
                           {"a_run", runs.failures}};
  return out;
}

json finish_json(const PlanInputs& inputs, const Plan& plan) {
  const RunDistribution& runs = plan.runs.distribution;
  json buckets = json::object();
  for (std::size_t b = 0; b < kBuckets; ++b) buckets[to_string(static_cast<Bucket>(b))] = runs.bucket_mean_s[b];
  json out = runs;
  out.update({{"steps", plan.schedule.steps},
              {"recovery", plan.policies.run.traced.name},
              {"failures_by", plan.runs.on_traces ? "wall clock" : "running time"},
              {"buckets_s", buckets},
              {"disturbances", disturbances_json(inputs, plan.schedule.input, runs)},
              {"days_p50", plan.cost.days.p50},
              {"days_low", plan.cost.days.p05},
              {"days_high", plan.cost.days.p95}});
  return out;
}

/// Comment lines with '#', at most 120 columns wide.
std::string comment(const std::string& text) {
  std::string out, line = "#";
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    const std::string word = text.substr(at, end - at);
    if (line.size() + 1 + word.size() > 120) {
      out += line + "\n";
      line = "#";
    }
    line += " " + word;
    at = end + 1;
  }
  return out + line + "\n";
}

/// null where the study has no drifting loads.
json drift_json(const Plan& plan) {
  if (plan.drift_note.empty()) return nullptr;
  json out{{"answer", plan.drift_note}, {"run_step_s", plan.run_step_s()}};
  if (!plan.replacement) return out;
  const ReplacementStudy& study = *plan.replacement;
  out["windows"] = study.windows, out["window_steps"] = study.window_steps, out["chosen"] = study.chosen;
  out["gain"] = study.gain(), out["options"] = study.options;
  return out;
}

}  // namespace

json evidence_json(const EvidenceShares& shares) {
  json out;
  for (Evidence kind : {Evidence::measured, Evidence::published, Evidence::derived, Evidence::assumed})
    out[to_string(kind)] = shares[static_cast<std::size_t>(kind)];
  return out;
}

json mfu_json(const PlanInputs& inputs) {
  return {{"flops_per_token", inputs.study.flops_per_token()},
          {"peak_flops", inputs.peak_flops},
          {"what",
           "6 x weights used + 6 x layers x heads x head_dim x seq, causal attention counted as half, no recompute; "
           "over the GPU's dense peak"}};
}

std::string plan_yaml(const PlanInputs& inputs, const Plan& plan) {
  std::string out = comment("Plan of " + inputs.study.name + " for " + std::to_string(inputs.study.gpus) + " GPUs of " +
                            inputs.study.cluster.name +
                            ", by windtunnel plan. A run file for windtunnel train once train_loader.dataset.local "
                            "names data, launched with one rank per GPU by Slurm, MPI or torchrun.");
  out += comment("Expected: " + plan_answer(inputs, plan) + " Range: " + plan_range(plan) + ".");
  out += comment(evidence_sentence(plan.step.evidence));
  out +=
      comment(fmt::format("Spare nodes: {:.0f}. A save every {} of work; why, and what this rests on: plan.json and "
                          "report.html beside this file.",
                          plan.schedule.cadence.spares.value, format_seconds(plan.schedule.cadence.interval_s.value)));
  out += comment("Learning rate, schedule and clipping are the trainer's defaults: set your own.");
  if (inputs.study.data.empty())
    out += comment("The study names no data: set train_loader.dataset.local to a folder of MDS shards.");
  return out + run_to_yaml(plan_run(inputs, plan));
}

json plan_json(const PlanInputs& inputs, const Plan& plan) {
  return {
      {"schema", "windtunnel.plan/1"},
      {"study", study_json(inputs.study)},
      {"answer", plan_answer(inputs, plan)},
      {"range", plan_range(plan)},
      {"doubts", plan_doubts(inputs, plan)},
      {"layout", plan.layout},
      {"layout_name", plan.layout.name()},
      {"layout_words", layout_words(plan.layout, inputs.stack)},
      {"expert_placement", plan.layout.placement},
      {"step", plan.step},
      {"ops", plan.step.totals},
      {"mfu_definition", mfu_json(inputs)},
      {"memory",
       {{"peak_bytes", plan.memory.live.peak()},
        {"allocated_bytes", forecast_json(plan.memory.allocated)},
        {"reserved_bytes", forecast_json(plan.memory.reserved)},
        {"process_bytes", forecast_json(plan.memory.process)},
        {"limit_bytes", plan.memory_limit_bytes},
        {"needed_bytes", plan.memory.needed()},
        {"out_of_memory", plan.memory.process.exceeds(plan.memory_limit_bytes)},
        {"accepted_out_of_memory", plan.memory.accepted_risk},
        {"moments", moments_json(plan.memory.moments)}}},
      {"routing",
       {{"imbalance_mean", plan.imbalance}, {"imbalance_p99", plan.imbalance_p99}, {"placement", plan.placement_note}}},
      {"drift", drift_json(plan)},
      {"cadence", cadence_json(plan.schedule)},
      {"finish", finish_json(inputs, plan)},
      {"policies", policies_json(plan.policies)},
      {"saves", saves_json(plan)},
      {"smaller_layouts", plan.smaller},
      {"formats", formats_json(inputs)},
      {"simple", plan.simple},
      {"passed_over", plan.passed_over},
      {"cost", cost_json(plan.cost)},
      {"failure_presets", plan.presets},
      {"certificate", plan.search.certificate},
      {"best", plan.search.best},
      {"chosen", plan.search.chosen},
      {"ties", plan.search.ties},
      {"choice", robust_json(plan)},
      {"measure_next", measure_json(plan)},
      {"candidates", plan.search.candidates},
      {"evidence_sources", plan.timed_by},
      {"assumptions", plan_assumptions(inputs, plan)}};
}

std::vector<std::filesystem::path> write_plan(const PlanInputs& inputs, const Plan& plan, const PlanDetails& details,
                                              const nlohmann::json& document, const std::filesystem::path& folder) {
  const std::string yaml = plan_yaml(inputs, plan), text = document.dump(1) + "\n", study = study_yaml(inputs.study);
  std::vector<std::filesystem::path> files =
      write_report(plan_report(inputs, plan, details, document), folder, "report");
  for (const auto& [name, bytes] : {std::pair{"plan.yaml", &yaml}, {"plan.json", &text}, {"study.yaml", &study}}) {
    files.insert(files.begin(), folder / name);
    write_file_atomically(files.front(), *bytes);
  }
  return files;
}

}  // namespace wt
