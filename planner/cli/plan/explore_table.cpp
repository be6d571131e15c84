#include "planner/cli/plan/explore_table.hpp"

#include <fmt/format.h>

#include "configs/base/number.hpp"
#include "planner/cli/parts/cells.hpp"

namespace wt {
namespace {

enum : std::size_t { kCluster, kGpus, kBatch, kDays, kDaysLow, kDaysHigh, kHours, kHoursHigh, kStep, kLayout };

std::vector<Cell> row_of(const ExploredRow& row) {
  std::vector<Cell> cells{row.cluster, whole(row.gpus), whole(row.batch)};
  if (!row.misfit.empty()) {
    cells.insert(cells.end(), {"-", "-", "-", "-", "-", "-", Cell(row.misfit, Status::bad)});
    return cells;
  }
  for (const double days : {row.days.p50, row.days.p05, row.days.p95})
    cells.emplace_back(days, fmt::format("{:.1f}", days));
  cells.insert(cells.end(), {Cell(row.paid_hours.p50), Cell(row.paid_hours.p95), Cell(row.step_s), row.layout});
  return cells;
}

}  // namespace

Section explore_section(const std::vector<ExploredRow>& rows, std::size_t start, const std::optional<PriceSpec>& prices,
                        std::optional<double> within_s) {
  Table table{.title = "Rows that were planned",
              .columns = {"cluster", numeric("GPUs"), numeric("batch", "sequences"), numeric("finish", "days"),
                          numeric("5 % of runs", "days"), numeric("95 % of runs", "days"), numeric("GPU-hours, P50"),
                          numeric("GPU-hours, P95"), numeric("step", "s"), "layout"},
              .note =
                  "GPU-hours are those of the training GPUs and of spare ones. Storage and egress are not in them. "
                  "A larger batch trains on the same tokens; what it costs in loss is not part of this.",
              .explore = Explore{.choices = {kCluster, kGpus, kBatch},
                                 .middle = kDays,
                                 .low = kDaysLow,
                                 .high = kDaysHigh,
                                 .paid = kHours,
                                 .paid_high = kHoursHigh,
                                 .words = kLayout,
                                 .start = start}};
  for (const ExploredRow& row : rows) table.rows.push_back(row_of(row));
  if (prices && prices->gpu_hour) {
    table.explore->price = prices->gpu_hour->middle();
    table.explore->currency = prices->currency;
  }
  if (within_s) table.explore->limit = *within_s / kDay_s;
  Section section{.id = "explore", .title = "Move GPUs, batch, price and deadline"};
  if (rows.size() == 1)
    section.paragraphs.emplace_back(
        "This plan alone was computed. `windtunnel plan --explore`, or several values of `--gpus`, give more rows.");
  section.items.emplace_back(std::move(table));
  return section;
}

}  // namespace wt
