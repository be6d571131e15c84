#include "sim/validate/judge_runs.hpp"

#include <fmt/core.h>

#include <optional>

#include "configs/base/error.hpp"
#include "configs/base/statistics.hpp"
#include "configs/files/data_sheet.hpp"
#include "sim/cost/ops/remembered_cost.hpp"
#include "sim/cost/stacks/own_steps.hpp"
#include "sim/cost/stacks/step_family.hpp"
#include "sim/fit/expert_loads.hpp"
#include "sim/program/routing/named_routing.hpp"
#include "sim/replay/simulated_step.hpp"

namespace wt {
namespace {

/// Rows with similar errors.
std::string regime_of(const RunRow& r) {
  const bool meshed = r.tp > 1 || r.pp > 1;
  std::string regime = r.model.experts > 0 ? "MoE, " : "dense, ";
  regime += r.zero_stage == 3 && r.pp == 1 ? (meshed ? "FSDP with tensor groups" : "FSDP")
            : meshed                       ? "tensor and pipeline"
                                           : "data parallel";
  if (r.gpus <= r.gpus_per_node) regime += ", one node";
  const Precisions& formats = r.precision.precisions;
  if (share_of_compute(formats.forward) < 1) regime += ", " + to_string(formats.forward);
  if (r.precision.compute == Precision::fp32) regime += ", " + r.precision.word;
  return regime;
}

/// The same training; rows with this choice differ in their layout.
std::string choice_of(const RunRow& r) {
  return fmt::format("{} on {} x {}, {} x {} tokens, {} ({})", r.model.name, r.gpus, r.gpu, r.global_batch, r.seq,
                     r.precision.word, r.source);
}

class Judge {
 public:
  Judge(const PublishedTimes& published, const RunsAsked& asked) : published_(published), asked_(asked) {
    if (!asked.stack.empty()) given_ = read_stack(asked.stack);
  }

  Judged judge(const RunRow& row) const {
    Judged j;
    j.line = row.line;
    j.name = row.name;
    j.group = row.group;
    j.origin = published_.stack_fit().origin_of(row);
    j.measured = row.step_s;
    j.regime = row.unusable.empty() ? regime_of(row) : "unusable rows";
    try {
      if (row.step_s <= 0 && row.unusable.empty()) throw_usage("no step time measured");
      predict(j, row);
    } catch (const Error& e) {
      if (e.code() != Code::usage) throw;
      j.forecast = j.baseline = {};
      j.forecast.reason = j.baseline.reason = e.what();
    }
    return j;
  }

 private:
  void predict(Judged& j, const RunRow& row) const {
    const StepWithout judged(row, given_ ? *given_ : stack_of(row.framework, published_.stacks()), published_,
                             asked_.left_out);
    const RunForecast step = forecast(judged.files, *judged.cost, judged.off_by);
    const bool known = !judged.typical && asked_.left_out != LeftOutOfSteps::stack;
    j.choice = choice_of(row);
    j.assumed = row.assumed;
    for (const std::string& what : judged.files.unsaid) j.assumed.push_back("no " + what);
    if (const std::string loads = expert_loads(row).assumed; !loads.empty()) j.assumed.push_back(loads);
    if (const std::string wires = row.interconnect.assumed(row.gpus); !wires.empty()) j.assumed.push_back(wires);
    j.forecast = {step.step_s, step.low_s, step.high_s,
                  only(known && judged.known_chip && j.assumed.empty() ? Evidence::published : Evidence::derived), ""};
    const double peak_s = *share_of_peak(row) * row.step_s;
    if (const auto share = typical_share(row)) j.baseline.value = peak_s / *share;
    j.baseline.evidence = j.forecast.evidence;
  }

  std::optional<double> typical_share(const RunRow& row) const {
    std::vector<double> alike, all;
    for (const RunRow& each : published_.tables().runs) {
      if (each.group == row.group) continue;
      const auto share = share_of_peak(each);
      if (!share) continue;
      all.push_back(*share);
      if (each.gpu == row.gpu && regime_of(each) == regime_of(row)) alike.push_back(*share);
    }
    if (all.empty()) return std::nullopt;
    return quantile(alike.empty() ? all : alike, 0.5);
  }

  const PublishedTimes& published_;
  const RunsAsked& asked_;
  std::optional<StackSpec> given_;
};

}  // namespace

std::optional<double> share_of_peak(const RunRow& r) {
  const auto sheet = data_sheet(r.gpu);
  if (!sheet || !r.unusable.empty() || !(r.step_s > 0)) return std::nullopt;
  return r.model.flops_per_token(r.seq) * static_cast<double>(r.tokens()) /
         (static_cast<double>(r.gpus) * sheet->flops * r.step_s);
}

StepWithout::StepWithout(const RunRow& row, const StackSpec& stack, const PublishedTimes& published,
                         LeftOutOfSteps left_out)
    : files(run_files(row, stack)) {
  const StepTraits traits = traits_of(files.stack, row.gpu);
  const bool all = left_out == LeftOutOfSteps::nothing;
  const std::string& origin = published.stack_fit().origin_of(row);
  times = all ? &published.benchmarks() : &published.without(origin).benchmarks;
  const StackFit& fit = all ? published.stack_fit() : *published.without(origin).stacks;
  typical = !fit.knows_stack(traits.stack);
  known_chip = fit.knows_chip(traits.chip);
  if (!times->collectives->knows_fabric(files.cluster.fabric)) files.cluster.fabric.clear();
  steps = left_out == LeftOutOfSteps::stack ? &fit.without_stack(traits.stack) : &fit.model();
  cost = std::make_unique<StackCost>(files.cluster, files.stack, *steps, *times, files.run.precisions);
  off_by = StepIntervals(published.step_bounds(all ? "" : origin), files.cluster, files.stack, *steps, *times)
               .of(step_family(row.model, files.run.layout));
}

std::unique_ptr<const StackCost> StepWithout::scaled(const std::map<std::string, double>& factors) const {
  return std::make_unique<StackCost>(files.cluster, with_factors(files.stack, *steps, factors), *steps, *times,
                                     files.run.precisions);
}

ReplayResult simulated(const RunFiles& files, const OpCost& cost, const StepRatiosByKind& off_by,
                       const RoutingSource& routing, std::int64_t step) {
  return simulated_step(step_question(files.run, files.cluster, files.stack, routing), cost,
                        {.replay = {.step = step, .timelines = false, .health = {}, .off_by = off_by}})
      .replay;
}

RunForecast forecast(const RunFiles& files, const OpCost& cost, const StepRatiosByKind& off_by) {
  const RememberedCost remembered(cost);
  const NamedRouting routing =
      read_routing(files.routing, files.run.model, files.run.tokens(), files.run.layout.expert);
  const ReplayResult step = simulated(files, remembered, off_by, *routing.source);
  return {step.step_s, step.low_s, step.high_s};
}

std::vector<Judged> judge_runs(const std::vector<RunRow>& rows, const PublishedTimes& published,
                               const RunsAsked& asked) {
  const Judge judge(published, asked);
  std::vector<Judged> judged;
  for (const RunRow& row : rows) {
    judged.push_back(judge.judge(row));
    if (asked.progress) asked.progress(judged.size(), rows.size());
  }
  add_intervals(judged, &Judged::baseline);
  return judged;
}

}  // namespace wt
