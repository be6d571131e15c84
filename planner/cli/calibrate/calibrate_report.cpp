#include "planner/cli/calibrate/calibrate_report.hpp"

#include <fmt/core.h>

#include "configs/base/json_members.hpp"
#include "configs/base/lookup.hpp"
#include "planner/cli/parts/cells.hpp"

namespace wt {

WT_TO_JSON(ClassResidual, how, points, median_error, p90_error, bias)

namespace {

/// Negative: not determined.
Cell error_cell(double share) { return share < 0 ? Cell("-") : percent(share); }

Table residual_table(const CalibrationResult& result) {
  Table table{
      .title = "Predicted against measured, by class",
      .columns = {"class", "how", numeric("points"), numeric("median error", "%"), numeric("90th percentile", "%"),
                  numeric("bias", "%"), numeric("held out, median", "%"), numeric("held out, 90th percentile", "%")}};
  for (const ClassResidual& r : result.residuals)
    table.rows.push_back({r.name, r.how, whole(r.points), error_cell(r.median_error), error_cell(r.p90_error),
                          signed_percent(r.bias), error_cell(r.held_out_median), error_cell(r.held_out_p90)});
  table.note =
      "Held out: predicted from the other shapes or points only; '-' where too few are there to leave one out.";
  return table;
}

/// Rates of one node and of all nodes for each store; no rows where storage was not measured.
Table storage_table(const std::vector<StorageRates>& stores) {
  Table table{.title = "Storage of checkpoints",
              .columns = {"store", "direction", numeric("ranks a node"), numeric("a node", "GB/s"),
                          numeric("latency", "ms"), numeric("nodes"), numeric("together", "GB/s"), "limit"}};
  for (const StorageRates& rates : stores)
    for (const auto& [word, rate] : {std::pair{"write", &rates.write}, {"read", &rates.read}})
      for (const NodeRate& node : rate->node)
        table.rows.push_back({store_words(rates.store), word, whole(node.ranks),
                              Cell(node.Bps / 1e9, rate->evidence.kind), Cell(rate->latency_s * 1e3),
                              whole(rate->nodes), Cell(rate->all_Bps / 1e9, rate->evidence.kind),
                              rate->limited ? "of the store" : "not seen"});
  table.note =
      "Together: the most that was seen. Limit: of the store where several nodes get less than 90 % of what they get "
      "one by one.";
  return table;
}

/// The class with the largest error on left-out measurements.
const ClassResidual* worst(const CalibrationResult& result) {
  const ClassResidual* found = nullptr;
  for (const ClassResidual& r : result.residuals)
    if (r.held_out_median >= 0 && (found == nullptr || r.held_out_median > found->held_out_median)) found = &r;
  return found;
}

}  // namespace

Report calibrate_report(const CalibrationResult& result) {
  Report report{.title = "Machine model"};
  const std::string name = value_or(result.model.data().fingerprint, "device", "this machine");
  std::int64_t points = 0;
  for (const ClassResidual& r : result.residuals) points += r.points;
  report.answer =
      fmt::format("{} measured points of {} give {} classes of op times.", points, name, result.residuals.size());
  if (const ClassResidual* r = worst(result))
    report.answer_range =
        fmt::format("hardest class held out: {}, median error {:.1f} %", r->name, r->held_out_median * 100);
  report.sections.push_back({.id = "residuals", .title = "What is left over", .items = {residual_table(result)}});
  if (Table storage = storage_table(result.model.data().storage); !storage.rows.empty())
    report.sections.push_back({.id = "storage", .title = "What saves and restores get", .items = {storage}});
  if (!result.notes.empty())
    report.sections.push_back({.id = "notes", .title = "What to know", .paragraphs = result.notes});
  nlohmann::json classes = nlohmann::json::array();
  const auto known = [](double error) { return error < 0 ? nlohmann::json() : nlohmann::json(error); };
  for (const ClassResidual& r : result.residuals)
    classes.emplace_back(r).update(
        {{"class", r.name}, {"held_out_median", known(r.held_out_median)}, {"held_out_p90", known(r.held_out_p90)}});
  report.payload = {{"residuals", classes}, {"notes", result.notes}};
  return report;
}

}  // namespace wt
