#include "planner/plan/explored.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "configs/base/number.hpp"
#include "configs/files/layout_words.hpp"

namespace wt {

ExploredRow explored_row(const PlanInputs& inputs, const Plan& plan) {
  const StudySpec& s = inputs.study;
  const Cost& cost = plan.cost;
  ExploredRow row{.cluster = s.cluster.name,
                  .gpus = s.gpus,
                  .batch = s.global_batch,
                  .days = cost.days,
                  .paid_hours = cost.gpu_hours,
                  .step_s = plan.step.step_s,
                  .layout = fmt::format("{}, {}, microbatch {}", layout_label(plan.layout, inputs.stack),
                                        to_string(plan.layout.recompute), plan.layout.microbatch)};
  // Spare nodes stand by as long as the run takes: their share is the same in each simulated run.
  const double with_spares = 1 + cost.spare_gpu_hours / cost.gpu_hours.mean;
  for (double* hours : {&row.paid_hours.p05, &row.paid_hours.p50, &row.paid_hours.p95, &row.paid_hours.mean})
    *hours *= with_spares;
  return row;
}

std::vector<ExploredRow> explored_rows(const Decision& decision) {
  std::vector<ExploredRow> out;
  for (const PlannedOption& o : decision.options)
    out.push_back(o.plan ? explored_row(*o.inputs, *o.plan)
                         : ExploredRow{.cluster = o.cluster, .gpus = o.gpus, .batch = o.batch, .misfit = o.misfit});
  return out;
}

StudyOptions options_around(const StudySpec& study) {
  StudyOptions out;
  out.gpus = {study.gpus};
  out.batches = {study.global_batch, 2 * study.global_batch};
  for (const double factor : {0.5, 0.75, 1.5, 2.0})
    out.gpus.push_back(
        usable_gpus(std::llround(factor * as_double(study.gpus)), study.cluster.gpus_per_node, 2 * study.global_batch));
  if (study.global_batch % 2 == 0) out.batches.push_back(study.global_batch / 2);
  for (std::vector<std::int64_t>* numbers : {&out.gpus, &out.batches}) {
    std::ranges::sort(*numbers);
    numbers->erase(std::ranges::unique(*numbers).begin(), numbers->end());
    std::erase(*numbers, 0);
  }
  return out;
}

}  // namespace wt
