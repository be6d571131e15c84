// One sentence, then why, then how sure.
#include "reports/build/plan_report.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "configs/spec/support/error.hpp"
#include "configs/spec/support/hash.hpp"
#include "reports/build/plan_sections.hpp"
#include "reports/build/provenance.hpp"

namespace wt {
namespace {

Section evidence_section(const PlanInputs& inputs, const Plan& plan) {
  Section s{.id = "evidence", .title = "What it rests on"};
  s.paragraphs.push_back(evidence_sentence(plan.step.evidence) +
                         ". Counted by the root: what follows from a published time counts as published.");
  std::string largest;
  const std::vector<PricedClass>& sources = plan.priced_by;
  for (std::size_t i = 0; i < std::min<std::size_t>(3, sources.size()); ++i)
    largest +=
        fmt::format("{}{}, {:.0f} % of the computation, rests on {} figure{} ({}{})", i ? "; " : "", sources[i].name,
                    100 * sources[i].share, sources[i].points, sources[i].points == 1 ? "" : "s",
                    sources[i].points > 1 ? "the first: " : "", sources[i].source);
  if (!largest.empty()) s.paragraphs.push_back("Largest sources: " + largest + ".");
  for (const std::string& assumption : plan_assumptions(inputs, plan)) s.paragraphs.push_back(assumption);
  Chart chart{.kind = ChartKind::bar,
              .title = "Share of the step time",
              .unit = "%",
              .labels = {},
              .series = {{.name = "share"}}};
  for (Evidence kind : {Evidence::measured, Evidence::published, Evidence::assumed, Evidence::derived}) {
    if (kind == Evidence::derived && plan.step.evidence[static_cast<std::size_t>(kind)] < 0.005) continue;
    chart.labels.push_back(to_string(kind));
    chart.series[0].values.push_back(100 * plan.step.evidence[static_cast<std::size_t>(kind)]);
  }
  s.items.push_back(chart);
  Table cluster{.title = "The cluster's numbers", .columns = {{"section"}, {"source"}}};
  for (const auto& [section, from] : inputs.study.cluster.sources) cluster.rows.push_back({section, to_string(from)});
  s.items.push_back(cluster);
  return s;
}

}  // namespace

Report plan_report(const PlanInputs& inputs, const Plan& plan, const PlanDetails& details, nlohmann::json document) {
  Report report;
  report.title = "Plan of " + inputs.study.name;
  report.answer = plan_answer(inputs, plan);
  report.answer_range = "Range: " + plan_range(inputs) + ".";
  report.status = plan.search.certificate.proved ? Status::good : Status::warn;
  report.sections = {
      layout_section(inputs, plan),  search_section(inputs, plan),           step_section(inputs, plan),
      memory_section(inputs, plan),  goodput_section(inputs, plan, details), sensitivity_section(plan, details),
      evidence_section(inputs, plan)};
  report.provenance = provenance(
      {{"configuration", fmt::format("study {}, hash {:016x}", inputs.study.name, hash_of(inputs.study.text))},
       {"seed", std::to_string(inputs.study.seed)},
       {"prices", inputs.basis}});
  report.payload = std::move(document);
  return report;
}

}  // namespace wt
