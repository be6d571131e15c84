// The report of a plan: one sentence, then the reasons, then the uncertainty.
#include "planner/cli/plan/plan_report.hpp"
#include "planner/cli/parts/relatives.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "configs/base/error.hpp"
#include "configs/base/hash.hpp"
#include "planner/cli/parts/cells.hpp"
#include "planner/cli/parts/provenance.hpp"
#include "planner/cli/plan/cost_report.hpp"
#include "planner/cli/plan/explore_table.hpp"
#include "planner/cli/plan/plan_sections.hpp"

namespace wt {
namespace {

constexpr std::size_t kShownSources = 5, kLongestTitle = 24;

/// The kernels with the largest shares of the computation, and their published or measured times.
Table sources_table(const Plan& plan) {
  Table table{.title = "Largest sources",
              .columns = {"kernel", numeric("computation", "%"), numeric("figures"), "the first"}};
  for (const TimedClass& each : plan.timed_by) {
    if (table.rows.size() == kShownSources) break;
    std::string name;  // "grouped_gemm/backward"
    for (const char c : each.name) name += c == '_' ? " " : c == '/' ? ", " : std::string(1, c);
    table.rows.push_back({name, percent(each.share), whole(each.points), each.source});
  }
  return table;
}

/// "Routing: the mean of ..." becomes an entry "Routing".
KeyValues assumptions(const PlanInputs& inputs, const Plan& plan) {
  KeyValues out{.title = "Assumptions"};
  for (const std::string& assumption : plan_assumptions(inputs, plan)) {
    const std::size_t colon = assumption.find(": ");
    const bool titled = colon != std::string::npos && colon <= kLongestTitle;
    out.entries.emplace_back(titled ? assumption.substr(0, colon) : "",
                             Cell(titled ? assumption.substr(colon + 2) : assumption));
  }
  return out;
}

Section evidence_section(const PlanInputs& inputs, const Plan& plan) {
  Section s{.id = "evidence", .title = "What it rests on"};
  s.paragraphs.push_back(evidence_sentence(plan.step.evidence) +
                         ". Counted by the root: what follows from a published time counts as published.");
  Chart chart{.kind = ChartKind::bar,
              .title = "Share of the step time",
              .unit = "%",
              .series = {{.name = "share"}},
              .horizontal = true};
  for (Evidence kind : {Evidence::measured, Evidence::published, Evidence::assumed, Evidence::derived}) {
    if (kind == Evidence::derived && plan.step.evidence[static_cast<std::size_t>(kind)] < 0.005) continue;
    chart.labels.push_back(to_string(kind));
    chart.series[0].values.push_back(100 * plan.step.evidence[static_cast<std::size_t>(kind)]);
  }
  s.items.push_back(chart);
  if (!inputs.study.cluster.shared_cores()) s.items.push_back(relatives_table(features_of(inputs, plan.layout)));
  if (!plan.timed_by.empty()) s.items.push_back(sources_table(plan));
  s.items.push_back(assumptions(inputs, plan));
  KeyValues cluster{.title = "The cluster's numbers"};
  for (const auto& [section, from] : inputs.study.cluster.sources)
    cluster.entries.emplace_back(section, to_string(from));
  s.items.push_back(cluster);
  return s;
}

Section explored(const PlanInputs& inputs, const Plan& plan, const PlanDetails& details) {
  const ExploredRow own = explored_row(inputs, plan);
  std::vector<ExploredRow> rows = details.explored;
  const auto is_own = [&](const ExploredRow& row) {
    return row.cluster == own.cluster && row.gpus == own.gpus && row.batch == own.batch;
  };
  auto at = std::ranges::find_if(rows, is_own);
  if (at == rows.end()) at = rows.insert(at, own);
  return explore_section(rows, static_cast<std::size_t>(at - rows.begin()), inputs.study.prices, details.within_s);
}

}  // namespace

Report plan_report(const PlanInputs& inputs, const Plan& plan, const PlanDetails& details, nlohmann::json document) {
  Report report{
      .title = "Plan of " + inputs.study.name,
      .answer = plan_answer(inputs, plan),
      .answer_range = "Range: " + plan_range(plan) + ".",
      .status = plan.search.certificate.proved && plan_doubts(inputs, plan).empty() ? Status::good : Status::warn,
      .sections = {first_page(inputs, plan, details), explored(inputs, plan, details), layout_section(inputs, plan),
                   search_section(inputs, plan), robust_section(inputs, plan), step_section(inputs, plan),
                   memory_section(inputs, plan), goodput_section(inputs, plan, details), policies_section(plan),
                   cost_section(plan.cost), sensitivity_section(details), evidence_section(inputs, plan)},
      .provenance = provenance(
          {{"configuration", fmt::format("study {}, hash {:016x}", inputs.study.name, hash_of(inputs.study.text))},
           {"seed", std::to_string(inputs.study.seed)},
           {"times", inputs.basis}}),
      .payload = std::move(document)};
  for (Section& section : report.sections) section.folded = section.id != "summary";
  const auto& facts = std::get<KeyValues>(report.sections.front().items.front()).entries;
  if (std::ranges::any_of(facts, [](const auto& fact) { return fact.second.status == Status::warn; }))
    report.status = Status::warn;  // the first line is no surer than the page below it
  return report;
}

}  // namespace wt
