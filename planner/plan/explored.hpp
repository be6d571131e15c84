// Plans around a study, as rows among which a reader of the report moves: other numbers of GPUs, other batches.
#pragma once
#include <string>
#include <vector>

#include "planner/plan/decision.hpp"

namespace wt {

/// An option in the figures that decide. Days and hours are over the simulated runs, each with a step drawn from its
/// interval.
struct ExploredRow {
  std::string cluster;
  std::int64_t gpus = 0;
  std::int64_t batch = 0;  ///< sequences per step
  CostRange days = {};
  CostRange paid_hours = {};  ///< GPU-hours of training and of spare GPUs
  double step_s = 0;
  std::string layout = {};
  std::string misfit = {};  ///< why there is no plan; "" = there is one
};

ExploredRow explored_row(const PlanInputs& inputs, const Plan& plan);
std::vector<ExploredRow> explored_rows(const Decision& decision);

/// The study's own numbers, half, three quarters, one and a half and twice its GPUs (whole nodes that divide the
/// batch), and half and twice its batch.
StudyOptions options_around(const StudySpec& study);

}  // namespace wt
