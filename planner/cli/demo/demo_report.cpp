#include "planner/cli/demo/demo_report.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <ranges>

#include "configs/base/lookup.hpp"
#include "configs/base/quantity.hpp"
#include "configs/base/text.hpp"
#include "planner/cli/compare/proof_report.hpp"
#include "planner/cli/plan/plan_report.hpp"

namespace wt {
namespace {

std::string comparison_line(const RunComparison& c) {
  return fmt::format(
      "{} ({}): step {} predicted, {} measured ({:+.1f} %); exposed communication off by {:+.1f} % of the step; peak "
      "memory {:+.2f} %{}",
      c.name, c.layout, format_seconds(c.predicted_step_s()), format_seconds(c.measured_step_s()), 100 * c.step_error(),
      100 * c.exposed_error(), 100 * c.peak_error(), c.calibrated_on ? " [calibrated on]" : "");
}

std::string calibration_line(const std::vector<ClassResidual>& residuals) {
  double items = 0, ops = 0;
  std::int64_t item_classes = 0, op_classes = 0;
  for (const ClassResidual& r : residuals) {
    if (r.how == "fit") items += r.median_error, ++item_classes;
    if (r.how == "op") ops += r.median_error, ++op_classes;
  }
  return fmt::format("{} classes; median error {:.1f} % over {} kernel fits, {:.1f} % over {} kinds of ops",
                     residuals.size(), item_classes ? 100 * items / static_cast<double>(item_classes) : 0.0,
                     item_classes, op_classes ? 100 * ops / static_cast<double>(op_classes) : 0.0, op_classes);
}

}  // namespace

std::string demo_stage(DemoStage stage, const DemoResult& result) {
  const RunSpec& run = result.run;
  switch (stage) {
    case DemoStage::data:
      return result.data;
    case DemoStage::train:
      return fmt::format("{} steps of {} ({} M parameters, {}): loss {:.3f} -> {:.3f}, {:.0f} tokens/s", run.steps,
                         run.model.name, run.model.total_parameters() / 1000000, run.layout.name(), result.first_loss,
                         result.last_loss, result.tokens_per_s);
    case DemoStage::bench:
      return fmt::format("{} kernels, collectives and storage shapes measured on {}", result.suites.measurements.size(),
                         value_or(result.suites.fingerprint, "cpu_model", "this machine"));
    case DemoStage::calibrate:
      return calibration_line(result.residuals);
    case DemoStage::simulate:
      return fmt::format("{}{}", fmt::join(result.comparisons | std::views::transform(comparison_line), "\n"),
                         disturbance(result.comparisons));
    case DemoStage::plan:
      return plan_answer(result.inputs, result.plan) + "\nRange: " + plan_range(result.plan);
    case DemoStage::drill:
      return fmt::format("{} faults injected, recovery {}", result.drill.cases.size(),
                         result.drill.passed() ? "bitwise exact in every case" : "NOT exact");
    case DemoStage::gate:
      return "this build against itself, three interleaved processes a side: " + result.gate.sentence();
  }
  return "";
}

Callout demo_verdict(const DemoResult& result) {
  const DemoJudgement judgement = result.judgement();
  if (!judgement.broken.empty())
    return {Status::bad,
            fmt::format("Predictions of this machine's runs missed {}", counted(judgement.broken.size(), "bar")),
            fmt::format("{}.", fmt::join(judgement.broken, ". "))};
  if (!result.drill.passed()) return {Status::bad, "A recovery was not exact", "The section on faults says which."};
  if (!result.passed()) return {Status::bad, "No prediction was tried", "Every run was calibrated on."};
  if (!judgement.disturbed.empty())
    return {Status::warn, fmt::format("Times of {} are not judged", counted(judgement.disturbed.size(), "run")),
            fmt::format("{}.", fmt::join(judgement.disturbed, ". "))};
  return {Status::good, "Every prediction of this machine's runs was within its bar, and every recovery was exact", ""};
}

Report demo_report(const DemoResult& result) {
  Report report = plan_report(result.inputs, result.plan, result.details, plan_json(result.inputs, result.plan));
  report.title = "Windtunnel demo: what was measured here, and the plan of " + result.inputs.study.name;
  const DemoJudgement judgement = result.judgement();
  const Callout verdict = demo_verdict(result);
  if (verdict.status != Status::good) {
    report.status = verdict.status;
    report.answer_range = verdict.title + ". " + report.answer_range;
  }
  Section compared = comparison_section(result.comparisons);
  compared.items.insert(compared.items.begin(), verdict);
  const auto proof = {compared, timeline_section(result.shown()), rank_memory_section(result.comparisons)};
  report.sections.insert(report.sections.begin(), proof.begin(), proof.end());
  const auto evidence = std::ranges::find_if(report.sections, [](const Section& s) { return s.id == "evidence"; });
  report.sections.insert(evidence, drill_section(result.drill));
  for (Section& section : report.sections) section.folded = section.id != "summary" && section.id != compared.id;
  nlohmann::json comparisons = nlohmann::json::array();
  for (const RunComparison& c : result.comparisons) comparisons.push_back(to_json(c));
  report.payload["comparisons"] = comparisons;
  report.payload["drill"] = to_json(result.drill);
  report.payload["judgement"] = {{"broken", judgement.broken}, {"disturbed", judgement.disturbed}};
  return report;
}

std::string demo_summary(const DemoResult& result, const std::filesystem::path& report) {
  const std::vector<RunComparison> unseen(result.comparisons.begin() + 1, result.comparisons.end());
  return fmt::format(
      "Measured: {} training steps and {} benchmarks on this machine. Predictions: {}. Plan: {} Range: {}. Recovery "
      "after {} injected faults was {}. The report is {}.",
      result.run.steps, result.suites.measurements.size(), error_sentence(unseen) + disturbance(result.comparisons),
      plan_answer(result.inputs, result.plan), plan_range(result.plan), result.drill.cases.size(),
      result.drill.passed() ? "bitwise exact" : "NOT exact", report.string());
}

}  // namespace wt
