// Sentences about a plan, for the terminal, the run file and the report.
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "configs/base/number.hpp"
#include "configs/base/quantity.hpp"
#include "configs/base/text.hpp"
#include "configs/files/layout_words.hpp"
#include "configs/files/model_words.hpp"
#include "planner/cli/parts/collective_basis.hpp"
#include "planner/cli/parts/own_sheet.hpp"
#include "planner/cli/parts/relatives.hpp"
#include "planner/cli/parts/throughput.hpp"
#include "planner/cli/plan/plan_report.hpp"
#include "planner/plan/other_gpus.hpp"
#include "planner/search/layout_space.hpp"

namespace wt {
namespace {

/// The first load scenario that is not a recording.
const LoadScenario* trained_of(const PlanInputs& inputs) {
  const auto found =
      std::ranges::find_if(inputs.scenarios, [](const LoadScenario& s) { return s.trained.has_value(); });
  return found == inputs.scenarios.end() ? nullptr : &*found;
}

/// Whether a policy has all inputs, but another one is better.
bool not_chosen(const Plan& plan, const std::string& policy) {
  const auto row = std::ranges::find(plan.policies.rows, policy, &PolicyRow::policy);
  return row != plan.policies.rows.end() && row->outcome && policy != plan.policies.run.traced.name;
}

/// A sentence on a feature of the study that the chosen recovery policy does not use.
std::string left_out(const Plan& plan, const char* key) {
  return fmt::format("{} is left out: {} is the better recovery policy.", key, plan.policies.run.traced.name);
}

/// A sentence on the events in simulated traces.
std::string traced_sentence(const PlanInputs& inputs, const Plan& plan) {
  const std::int64_t runs = plan.runs.distribution.runs;
  const std::string faults = inputs.study.faults.empty()
                                 ? ""
                                 : fmt::format(" and of the study's faults ({})", fmt::join(inputs.study.faults, ", "));
  return fmt::format(
      "Runs meet the failures of {}{} on the clock of the wall, by member of the cluster, and recover by {}: the first "
      "{} of {} are those of the comparison of recovery policies.{}",
      inputs.failures.name, faults, plan.policies.run.traced.name, std::min(plan.policies.traces, runs),
      format_number(as_double(runs)),
      runs < inputs.study.runs ? " They have so many failures that no more are simulated." : "");
}

std::string silent_sentence(const PlanInputs& inputs, const Plan& plan) {
  const SilentErrorSpec& given = inputs.study.silent_errors;
  const RunDistribution& runs = plan.runs.distribution;
  const Provenance& rate = inputs.silent_errors->per_1000_node_days.evidence;
  const std::string begin = fmt::format("Silent errors as in {}", given.rate),
                    end = fmt::format(" Rate: {}: {}.", to_string(rate.kind), rate.source);
  if (plan.schedule.input.silent.mean_s == 0)
    return fmt::format("{}, which {} finds after {}: what was trained since is lost.{}", begin,
                       plan.policies.run.traced.name, format_seconds(given.found_after_s), end);
  return fmt::format(
      "{}: {:.1f} a run, found by a verification of {} before each save; verification and maintenance take {:.2f} % of "
      "the wall time.{} Verification: {}: {}.",
      begin, runs.silent_errors, format_seconds(given.verify_s),
      100 * runs.bucket_mean_s[static_cast<std::size_t>(Bucket::custom_events)] / runs.mean_s, end,
      to_string(given.evidence.kind), given.evidence.source);
}

}  // namespace

std::string evidence_sentence(const EvidenceShares& shares) {
  const auto percent = [&](Evidence kind) { return 100 * shares[static_cast<std::size_t>(kind)]; };
  std::string out = fmt::format(
      "Step time rests on {:.0f} % measured, {:.0f} % published (directly or by derivation), {:.0f} % assumed",
      percent(Evidence::measured), percent(Evidence::published), percent(Evidence::assumed));
  if (percent(Evidence::derived) >= 0.5)
    out += fmt::format(", {:.0f} % derived from other GPUs or stacks", percent(Evidence::derived));
  return out;
}

std::string mfu_definition(const PlanInputs& inputs) {
  if (!(inputs.peak_flops > 0)) return "";
  return fmt::format("{:.1f} GFLOP a token without recompute over {:.0f} TFLOP/s", inputs.study.flops_per_token() / 1e9,
                     inputs.peak_flops / 1e12);
}

std::string plan_answer(const PlanInputs& inputs, const Plan& plan) {
  const StudySpec& s = inputs.study;
  return fmt::format("{} on {} {} {}: {} tokens in {:.1f} days ({:.1f} to {:.1f}).", s.model.name,
                     format_number(as_double(s.gpus)), s.cluster.name, s.cluster.shared_cores() ? "ranks" : "GPUs",
                     format_tokens(s.tokens), plan.cost.days.p50, plan.cost.days.p05, plan.cost.days.p95) +
         (s.cluster.shared_cores() ? "" : beyond_sentence(features_of(inputs, plan.layout)));
}

std::string step_sentence(const PlanInputs& inputs, const Plan& plan) {
  const Simulated& step = plan.step;
  const std::string approximated = approximations_text(inputs.study.model);
  return fmt::format("Step: {} ({} to {}, 80 % interval), {} tokens/s/{}{}. Parameters: {}.{}",
                     format_seconds(step.step_s), format_seconds(step.low_s), format_seconds(step.high_s),
                     format_number(step.tokens_per_s_per_gpu), inputs.study.cluster.shared_cores() ? "rank" : "GPU",
                     step.mfu > 0 ? fmt::format(", MFU {:.1f} %", 100 * step.mfu) : "",
                     parameters_text(inputs.study.model),
                     approximated.empty() ? "" : " Approximated: " + approximated + ".");
}

std::string simple_sentence(const PlanInputs& inputs, const Plan& plan) {
  const auto text = [&](const Candidate& c) {
    return fmt::format("{}, {} a step", layout_label(c.layout, inputs.stack), format_seconds(c.result->step_s));
  };
  if (plan.passed_over)
    return fmt::format(
        "Chosen for its simplicity, without tensor, pipeline and context groups. Passed over: {}, which is {:.1f} % "
        "{}, "
        "while its interval is {:.0f} % wider and no measured run is like it. Measure a step of both to decide.",
        text(*plan.passed_over), 100 * std::abs(plan.lead.ahead), plan.lead.ahead < 0 ? "behind" : "ahead",
        100 * plan.lead.wider);
  if (is_simple(plan.layout)) return "";
  if (!plan.simple)
    return "The simple alternative, without tensor, pipeline and context groups, does not fit or is not in the study.";
  std::string out =
      fmt::format("The simple alternative, without tensor, pipeline and context groups: {}, {:.1f} % {}.",
                  text(*plan.simple), 100 * std::abs(plan.lead.ahead), plan.lead.ahead < 0 ? "less" : "more");
  if (plan.lead.ahead < plan.lead.wider)
    out += fmt::format(" That is less than what its interval is narrower by ({:.0f} %).", 100 * plan.lead.wider);
  return out;
}

std::string plan_range(const Plan& plan) {
  return fmt::format("the 5 % to the 95 % quantile of {} simulated runs, each with a step drawn from its interval",
                     format_number(as_double(plan.runs.distribution.runs)));
}

std::string memory_sentence(const PlanInputs& inputs, const Plan& plan) {
  const MemoryForecast& process = plan.memory.process;
  const std::string of =
      fmt::format("Memory: {} (median) of {}", format_bytes(process.bytes), format_bytes(plan.memory_limit_bytes));
  if (!inputs.memory) return of + " a rank, tensors alone";
  return fmt::format(
      "{} a process at p99 load; out of memory with a probability of {:.2g} %, at most {:g} % is accepted", of,
      100 * process.exceeds(plan.memory_limit_bytes), 100 * plan.memory.accepted_risk);
}

std::string plan_scope(const PlanInputs& inputs) {
  const StackLayouts& stack = inputs.stack.layouts;
  const SearchSpec& space = inputs.study.search;
  std::vector<std::string> searched{stack.replicas ? "FSDP and HSDP" : "FSDP"}, fixed, not_run, others;
  const auto add = [&](bool runs, const std::vector<std::int64_t>& degrees, const char* what) {
    const bool more = degrees.empty() || *std::ranges::max_element(degrees) > 1;
    (!runs ? not_run : more ? searched : fixed).emplace_back(what);
  };
  if (inputs.study.model.experts > 0) add(true, space.expert_degrees, "expert");
  add(stack.tensor, space.tensor_degrees, "tensor");
  add(!stack.schedules.empty(), space.pipeline_degrees, "pipeline");
  if (stack.context_ring.empty())
    add(false, space.context_degrees, "context parallelism");
  else if (space.context_degrees.empty() && inputs.study.seq < 2 * kFewestContextTokens)
    others.insert(others.begin(), "context parallelism of fewer than 4,096 tokens a rank");
  else
    add(true, space.context_degrees,
        space.context_degrees.empty() ? "context parallelism (of 4,096 tokens a rank or more)" : "context parallelism");
  const auto narrow = [](const std::string& word) { return word.starts_with("amp_") ? word.substr(4) : word; };
  std::vector<std::string> formats{narrow(inputs.study.precision.word)}, unsearched;
  for (const FormatRow& row : inputs.formats)
    if (row.unplanned.empty() && row.precision != inputs.study.precision.word) formats.push_back(narrow(row.precision));
  if (inputs.formats.empty() && !inputs.study.cluster.shared_cores())
    for (const NumberFormat each : inputs.stack.formats)
      if (to_string(each) != formats.front()) unsearched.push_back(to_string(each));
  if (!unsearched.empty()) others.push_back(fmt::format("{} (search.precision)", fmt::join(unsearched, ", ")));
  std::string out = fmt::format("Searched: {}, with recompute and microbatch in {}", fmt::join(searched, ", "),
                                fmt::join(formats, ", "));
  if (!fixed.empty()) out += fmt::format(". Left at 1 by the study: {}", fmt::join(fixed, ", "));
  if (!not_run.empty() && inputs.study.lora)
    out += fmt::format(". Not searched with adapters: {}", fmt::join(not_run, ", "));
  else if (!not_run.empty())
    out += fmt::format(". {} does not run: {}", inputs.stack.name, fmt::join(not_run, ", "));
  return others.empty() ? out : out + fmt::format(". Not searched: {}", fmt::join(others, ", "));
}

std::string proof_words(const Certificate& c) {
  return c.proved ? "the fewest " + c.unit + " are proved"
                  : fmt::format("not proved: another layout may take up to {:.2f} % fewer {}",
                                100 * c.could_be_better(), c.unit);
}

std::vector<std::string> plan_doubts(const PlanInputs& inputs, const Plan& plan) {
  const CadenceInput& in = plan.schedule.input;
  const double spares = plan.schedule.cadence.spares.value, goodput = plan.schedule.cadence.goodput.value;
  const std::string rates =
      fmt::format("one of the nodes fails every {} (failures: {}) and is away for {} (repair_time)",
                  format_seconds(in.mtbf_s.value), inputs.study.failures, format_seconds(in.repair_s.value));
  std::vector<std::string> out;
  if (spares > as_double(in.nodes) / 4 && !inputs.study.spare_nodes)
    out.push_back(fmt::format("{} spare nodes for {} are no plan: {}. Check these two.", format_number(spares),
                              counted(in.nodes, "node"), rates));
  if (!divides_batch(inputs.study))
    out.push_back(dividing_gpus_sentence(inputs.study) +
                  " Only layouts whose tensor, pipeline or context groups share sequences were left.");
  if (goodput < 0.5)
    out.push_back(
        fmt::format("Only {:.3g} % of the time trains: {}, and a restart takes {} after each failure. Check these.",
                    100 * goodput, rates,
                    format_seconds(in.recovery.detect_s.value + in.recovery.reschedule_s.value +
                                   in.recovery.restart_s.value + in.recovery.reload_s.value)));
  return out;
}

std::vector<std::string> plan_disturbances(const PlanInputs& inputs, const Plan& plan) {
  std::vector<std::string> out;
  const RunDistribution& runs = plan.runs.distribution;
  if (plan.runs.on_traces) out.push_back(traced_sentence(inputs, plan));
  const auto cite = [](const SourcedNumber& n) {
    return fmt::format("{}: {}", to_string(n.evidence.kind), n.evidence.source);
  };
  if (const auto& slow = plan.schedule.input.stragglers)
    out.push_back(fmt::format(
        "Slow nodes as in {}: {:.1f} a run, each for {} until it {}; a step then takes {:.4g} times as long. They cost "
        "{:.2f} % of the wall time (bucket 'other', without restarts). Rate: {}. Factor: {}. Duration: {}.",
        inputs.study.stragglers, runs.stragglers, format_seconds(slow->duration_s.value),
        slow->exchanged ? "is found and exchanged" : "recovers", slow->step_factor.value,
        100 * runs.bucket_mean_s[static_cast<std::size_t>(Bucket::other)] / runs.mean_s,
        cite(slow->onset.per_1000_node_days), cite(slow->step_factor), cite(slow->duration_s)));
  const MaintenanceSpec& m = inputs.study.maintenance;
  if (m.every_s > 0)
    out.push_back(fmt::format(
        "Maintenance of {} every {}, after a save: {:.1f} planned stops a run, with those of the failure preset.",
        format_seconds(m.duration_s), format_seconds(m.every_s), runs.planned_stops));
  const StudySpec& s = inputs.study;
  if (const LocalCheckpoints& local = plan.schedule.input.local; local.interval_steps > 0)
    out.push_back(
        fmt::format("Local saves to host memory every {}{}, blocking {}; {:g} % of failures leave them intact, and "
                    "cost a reload of {} ({}).",
                    counted(local.interval_steps, "step"),
                    local.interval_steps == plan.schedule.cadence.interval_steps ? ", each also to storage" : "",
                    format_seconds(local.blocking_s), 100 * local.survival, format_seconds(local.reload_s),
                    cite({local.survival, s.checkpoint.local_evidence})));
  else if (not_chosen(plan, kLocalCopies))
    out.push_back(left_out(plan, "checkpoint.local"));
  else if (s.checkpoint.local_every_s > 0)
    out.push_back(fmt::format(
        "checkpoint.local does nothing here and is left out: every {} is, in whole steps, not shorter than the {} "
        "between saves to storage.",
        format_seconds(s.checkpoint.local_every_s), format_seconds(plan.schedule.cadence.interval_s.value)));
  if (inputs.silent_errors) out.push_back(silent_sentence(inputs, plan));
  if (const ReplicaTolerance& t = plan.schedule.input.tolerance; t.replicas > 0)
    out.push_back(fmt::format(
        "A failure stops one of {} replicas for {}, the others for {} ({}); the job restarts when less than half of "
        "them are there.",
        t.replicas, format_seconds(t.recover_s), format_seconds(t.stall_s), cite({0, s.replica_loss.evidence})));
  else if (not_chosen(plan, kWithoutReplica))
    out.push_back(left_out(plan, "replica_loss"));
  else if (s.replica_loss.recover_s > 0)
    out.push_back("replica_loss does nothing here: the layout has one replica, so that every failure stops the job.");
  if (const CadenceInput& in = plan.schedule.input; in.planned_mean_s.value > 0)
    out.push_back(fmt::format("Planned stops as in {}, after a save: one every {} of running time{}. Rate: {}.",
                              inputs.failures.name, format_seconds(in.planned_mean_s.value),
                              in.planned_stop_s.value > 0 ? ", for " + format_seconds(in.planned_stop_s.value) : "",
                              cite(in.planned_mean_s)));
  if (!out.empty())
    out.push_back(
        "Only the simulated runs have these; goodput and days by the closed form leave them out, but for replicas that "
        "may be lost.");
  return out;
}

std::vector<std::string> plan_collectives(const PlanInputs& inputs) {
  if (inputs.study.profiles.empty() || inputs.study.cluster.shared_cores()) return {};
  return collective_basis(*inputs.times, inputs.study.cluster);
}

std::string p99_basis(const PlanInputs& inputs) {
  return trained_of(inputs) != nullptr ? "layers and microbatches"
                                       : "layers and domains of corpus counts; single microbatches swing more";
}

std::vector<std::string> plan_assumptions(const PlanInputs& inputs, const Plan& plan) {
  const CommunicationSlowdown slowdown = inputs.times->traits().communication_slowdown;
  std::vector<std::string> out{fmt::format(
      "Overlap: weights of the next layer are gathered while a layer computes, gradients are reduced behind it, one "
      "layer ahead as in the step program{}; {}. Clocks that fall under load and stragglers are not in the step time.",
      inputs.times->traits().separate_reduce_group ? "" : ", and go one after the other through one communicator",
      slowdown.share > 0 ? fmt::format("collectives in flight take {:.0f} % of the compute rate ({})",
                                       100 * slowdown.share, to_string(slowdown.evidence))
                         : "what communication takes from computation is in the times of computation")};
  out.insert(out.begin(), inputs.study.assumptions.begin(), inputs.study.assumptions.end());
  if (const std::string own = own_sheet_sentence(inputs.study.cluster); !own.empty()) out.push_back(own);
  if (inputs.own)
    for (const OwnRun& run : inputs.own->runs)
      out.push_back(fmt::format("Your measured step {}: {}; predicted {} without measured steps, and {} with them.",
                                run.name, format_seconds(run.measured_s), format_seconds(run.before_s),
                                format_seconds(run.after_s)));
  if (inputs.scenarios.empty())
    out.push_back("Routing is balanced by assumption; real loads are not. Give recorded ones.");
  std::string names;
  bool derived = false;
  const LoadScenario* trained = trained_of(inputs);
  for (const LoadScenario& scenario : inputs.scenarios) {
    names += (names.empty() ? "" : ", ") + scenario.name;
    derived = derived || scenario.evidence.kind == Evidence::derived || scenario.evidence.kind == Evidence::assumed;
  }
  if (!names.empty())
    out.push_back(
        fmt::format("Routing: {}{} (memory at p99 over {}). {}",
                    trained && inputs.scenarios.size() == 1 ? "" : "the mean of ", names, p99_basis(inputs),
                    trained   ? fmt::format("These are {}; record the routing of this model.", trained->evidence.source)
                    : derived ? "These are a proxy, not recordings of this model, and recorded at inference."
                              : "Recorded at inference of a trained model, one domain of text at a time."));
  const StudySpec& study = inputs.study;
  if (!study.cluster.shared_cores())
    out.push_back(
        fmt::format("Times: {}kernel, collective and training-run times that others published of {}, as {} uses them; "
                    "overlap is the replay's. How far such predictions are off: windtunnel validate runs FILE.",
                    inputs.basis.find(", then ") == std::string::npos ? "" : "what the profiles measured, then ",
                    study.cluster.nodes_text(study.gpus), study.stack));
  const std::vector<std::string> collectives = plan_collectives(inputs);
  out.insert(out.end(), collectives.begin(), collectives.end());
  for (const auto& [section, sources] : inputs.study.cluster.sources)
    for (const Provenance& source : sources)
      if (source.kind == Evidence::assumed) out.push_back("Cluster, " + section + ": " + to_string(source));
  if (!inputs.study.checkpoint.rates_note.empty())
    out.push_back("Storage: not measured: " + inputs.study.checkpoint.rates_note + ".");
  if (plan.schedule.input.blocking_s.evidence.kind == Evidence::assumed)
    out.push_back("Checkpoints: " + plan.schedule.input.blocking_s.evidence.source);
  out.push_back(
      "Checkpoints: saves are asynchronous, as the trainer's are: the copy to host memory blocks, writing does not.");
  out.push_back(fmt::format(
      "Ties within {:.1f} %: that width is our choice; the error of this model on this machine is not validated.",
      100 * inputs.study.search.tie));
  return out;
}

}  // namespace wt
