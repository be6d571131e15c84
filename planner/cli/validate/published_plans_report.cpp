#include "planner/cli/validate/published_plans_report.hpp"

#include <fmt/core.h>

#include "configs/base/json_members.hpp"
#include "configs/base/number.hpp"
#include "configs/base/statistics.hpp"
#include "planner/cli/parts/cells.hpp"
#include "planner/cli/parts/provenance.hpp"
#include "sim/validate/judged.hpp"

namespace wt {

WT_TO_JSON(AxisDifference, axis, found, nearest)
WT_TO_JSON(StepTerms, computation, recompute, communication, stages)

static void to_json(nlohmann::json& out, const PredictedPlan& p) {
  out = {{"layout", p.layout.name()},
         {"recompute", to_string(p.layout.recompute)},
         {"microbatch", p.layout.microbatch},
         {"predicted_s", p.step.step_s},
         {"interval80_s", {p.step.low_s, p.step.high_s}},
         {"memory_bytes", p.memory_bytes},
         {"terms_s", terms_of(p.step)}};
}
static void to_json(nlohmann::json& out, const PublishedComparison& p) {
  out = {{"run", p.plan.run.id},
         {"name", p.plan.run.name},
         {"source", p.plan.run.source},
         {"origin", p.plan.run.origin},
         {"good", p.plan.good},
         {"stack", p.stack},
         {"layouts", p.member.layouts},
         {"inside", p.member.inside()},
         {"differences", p.member.differences},
         {"chunks_dealt_otherwise", p.deals_layers_differently},
         {"published_s", p.plan.run.step_s},
         {"fits", p.fits()},
         {"memory_limit_bytes", p.memory_limit_bytes},
         {"theirs", p.published},
         {"ours", p.ours},
         {"less_time", p.faster()},
         {"beyond_interval", p.clearly_faster()},
         {"proved", p.certificate.proved},
         {"gap", p.certificate.gap}};
}

namespace {

std::string name_of(const RunRow& run) { return fmt::format("{}, {} x {}", run.model.name, run.gpus, run.gpu); }

std::string words(const Layout& l) {
  return fmt::format("{}, {}, microbatch {}", l.name(), to_string(l.recompute), l.microbatch);
}

Cell gibibytes(double bytes, Status judged = Status::none) {
  return {bytes / kGiB_bytes, fmt::format("{:.1f}", bytes / kGiB_bytes), {}, judged};
}

std::string missing(const PublishedComparison& p) {
  std::string out;
  for (const AxisDifference& d : p.member.differences)
    out += fmt::format("{}{}: {}, nearest {}", out.empty() ? "" : "; ", d.axis, d.found, d.nearest);
  return out;
}

double error_of(const PublishedComparison& p) { return p.published.step.step_s / p.plan.run.step_s - 1; }

struct Summary {
  std::size_t inside = 0, fits = 0, faster = 0, clearly = 0, proved = 0, covered = 0;
  double median_faster = 0;
  Accuracy steps;  ///< of the published layouts
};

Summary summary_of(const std::vector<PublishedComparison>& plans) {
  Summary out;
  std::vector<double> faster;
  std::vector<Judged> steps;
  for (const PublishedComparison& p : plans) {
    out.inside += p.member.inside();
    out.fits += p.fits();
    out.faster += p.faster() > 0;
    out.clearly += p.clearly_faster();
    out.proved += p.certificate.proved;
    out.covered += p.published.step.low_s <= p.plan.run.step_s && p.plan.run.step_s <= p.published.step.high_s;
    Judged& step = steps.emplace_back();
    step.origin = p.plan.run.origin;
    step.measured = p.plan.run.step_s;
    step.forecast.value = p.published.step.step_s;
    step.forecast.low = p.published.step.low_s, step.forecast.high = p.published.step.high_s;
    faster.push_back(p.faster());
  }
  out.median_faster = quantile(faster, 0.5);
  out.steps = accuracy(steps, &Judged::forecast);
  return out;
}

Table steps_table(const std::vector<PublishedComparison>& plans) {
  Table table{.columns = {"run", numeric("layouts"), "in the space", numeric("published", "s"),
                          numeric("predicted", "s"), numeric("80 % interval", "s"), numeric("error", "%"),
                          numeric("ours", "s"), numeric("less time", "%"), "beyond the interval"},
              .note =
                  "Predicted: the published layout. Ours: what the planner chooses for the same model, machine and "
                  "batch. Beyond the interval: our step is below the low end of the published layout's."};
  for (const PublishedComparison& p : plans) {
    const Simulated& step = p.published.step;
    table.rows.push_back({name_of(p.plan.run), whole(p.member.layouts),
                          p.member.inside() ? Cell("yes", Status::good) : Cell("no", Status::bad),
                          Cell(p.plan.run.step_s, Evidence::published), Cell(step.step_s),
                          fmt::format("{} to {}", format_number(step.low_s), format_number(step.high_s)),
                          signed_percent(error_of(p)), Cell(p.ours.step.step_s), signed_percent(p.faster()),
                          p.clearly_faster() ? "yes" : "no"});
  }
  return table;
}

Table why_table(const std::vector<PublishedComparison>& plans) {
  Table table{.columns = {"run", "published layout", "ours", numeric("computation", "%"), numeric("recompute", "%"),
                          numeric("communication", "%"), numeric("stages", "%"), numeric("memory", "GiB"),
                          numeric("ours", "GiB"), numeric("limit", "GiB")},
              .note =
                  "Ours minus the published layout's, in percent of the latter's step. Communication: that computation "
                  "does not hide. Stages: waiting for other pipeline stages. Memory: of a process, which needs more "
                  "with a probability of 20 %. Where the published layout is predicted above the limit although it "
                  "ran, ours may take as much."};
  for (const PublishedComparison& p : plans) {
    const StepTerms theirs = terms_of(p.published.step), ours = terms_of(p.ours.step);
    const auto term = [&](double StepTerms::*which) {
      return signed_percent((ours.*which - theirs.*which) / p.published.step.step_s);
    };
    table.rows.push_back({name_of(p.plan.run), words(p.published.layout), words(p.ours.layout),
                          term(&StepTerms::computation), term(&StepTerms::recompute), term(&StepTerms::communication),
                          term(&StepTerms::stages),
                          gibibytes(p.published.memory_bytes, p.fits() ? Status::none : Status::warn),
                          gibibytes(p.ours.memory_bytes), gibibytes(p.memory_limit_bytes)});
  }
  return table;
}

Table outside_table(const std::vector<PublishedComparison>& plans) {
  Table table{.title = "Layouts that the space does not have", .columns = {"run", "stack", "what it has not"}};
  for (const PublishedComparison& p : plans)
    if (!p.member.inside()) table.rows.push_back({name_of(p.plan.run), p.stack, missing(p)});
  return table;
}

Table sources_table(const std::vector<PublishedComparison>& plans) {
  Table table{.columns = {"run", "row", "source", "stack", "why its layout counts as good", "search"}};
  for (const PublishedComparison& p : plans)
    table.rows.push_back({name_of(p.plan.run), p.plan.run.id, p.plan.run.source, p.stack, p.plan.good,
                          p.certificate.proved ? "proved" : fmt::format("gap {:.1f} %", 100 * p.certificate.gap)});
  return table;
}

}  // namespace

nlohmann::json published_plans_json(const std::vector<PublishedComparison>& plans, const std::string& file) {
  const Summary s = summary_of(plans);
  return {{"schema", "windtunnel.published-plans/1"},
          {"file", file},
          {"plans", plans},
          {"summary",
           {{"n", plans.size()},
            {"inside", s.inside},
            {"fits", s.fits},
            {"median_ape", *s.steps.median_ape},
            {"origins", s.steps.origins},
            {"origin_median_ape", *s.steps.origin_median_ape},
            {"origin_coverage80", *s.steps.origin_coverage80},
            {"in_interval", s.covered},
            {"ours_predicted_faster", s.faster},
            {"median_less_time", s.median_faster},
            {"beyond_interval", s.clearly},
            {"proved", s.proved}}}};
}

Report published_plans_report(const std::vector<PublishedComparison>& plans, const std::string& file) {
  const Summary s = summary_of(plans);
  Report report{.title = "Published plans and ours"};
  report.answer = fmt::format(
      "{} of {} published layouts are in the space that the planner searches; the mean over {} origins of the median "
      "errors of their steps is {:.1f} %.",
      s.inside, plans.size(), s.steps.origins, 100 * *s.steps.origin_median_ape);
  report.answer_range = fmt::format(
      "all together: median error {:.1f} %, {} inside their 80 % interval, {} predicted to fit; our choice is "
      "predicted to take less time in {} of {}, in the median {:.1f} %, and beyond the interval in {}",
      100 * *s.steps.median_ape, s.covered, s.fits, s.faster, plans.size(), 100 * s.median_faster, s.clearly);
  report.sections.push_back({"steps",
                             "Steps",
                             {"Steps and memory are predicted without anything that the run's origin published: no "
                              "step, no benchmark, no memory."},
                             {steps_table(plans)}});
  report.sections.push_back({"why", "Where our choice takes other time", {}, {why_table(plans)}});
  if (Table outside = outside_table(plans); !outside.rows.empty())
    report.sections.push_back({"outside", "Not in the space", {}, {outside}});
  report.sections.push_back({"sources", "Whose runs", {}, {sources_table(plans)}});
  report.provenance = provenance({{"file", file}});
  report.payload = published_plans_json(plans, file);
  return report;
}

}  // namespace wt
