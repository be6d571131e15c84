// The problem of a plan's search: times with the study's factors, and the objective.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <tuple>

#include "planner/plan/checkpoint_times.hpp"
#include "planner/plan/plan.hpp"
#include "planner/search/scaled_cost.hpp"
#include "sim/cost/ops/remembered_cost.hpp"

namespace wt {

/// The objective of a plan's search: the expected days of the whole run, or its energy. Money for given GPUs increases
/// with the days alone, so the layout with the fewest days is also the cheapest. Energy counts lost steps as time
/// without steps.
///
/// Days are steps x step / goodput, in closed form. The goodput depends on the layout's saves, restarts and tolerated
/// replica losses. The save interval is not rounded to whole steps here, so that days are proportional to the step
/// time. A plan's cadence is rounded.
class RunObjective : public Objective {
 public:
  /// Both must outlive this. Throws Error{usage} if energy is preferred and has no prices.
  RunObjective(const PlanInputs& inputs, const SearchProblem& problem);
  std::string unit() const override { return energy() ? "kWh" : "days"; }
  double of(const Layout& layout, const Simulated& step) const override;
  double least(const Layout& layout, const LeastStep& step) const override;
  double least_of_any(const LeastStep& step) const override;
  bool counts_computing() const override { return energy(); }

 private:
  /// The properties of a layout that its saves and restarts depend on.
  using Key = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t,
                         std::int64_t, std::int64_t, std::int64_t, bool>;
  struct Protection {
    CheckpointSeconds seconds;
    CadenceInput quickest;              ///< without the broadcast of a restart, which needs a simulation
    std::optional<CadenceInput> whole;  ///< with the broadcast
    double interval_s = 0;
  };
  Protection& protection_of(const Layout& layout) const;
  CadenceInput protected_input(const Layout& layout, const CheckpointSeconds& seconds, double broadcast_s) const;
  double days(const CadenceInput& in, double interval_s, double step_s) const;
  /// `step_J`: energy of the whole job in a step, beyond its idle energy.
  double in_unit(double days, double step_J) const;
  bool energy() const { return inputs_.study.prefer == Prefer::energy; }
  /// Lower bound of a step's energy beyond idling. The time that is not certainly computing counts as the cheaper
  /// state.
  double least_J(const LeastStep& step) const;

  const PlanInputs& inputs_;
  const SearchProblem& problem_;
  double steps_;
  double best_goodput_ = 1;  ///< over all layouts
  double idle_W_ = 0, compute_W_ = 0, communicate_W_ = 0;
  mutable std::map<Key, Protection> known_;
};

class PlanSearch {
 public:
  /// `inputs` must outlive it. Throws as RunObjective.
  explicit PlanSearch(const PlanInputs& inputs)
      : scaled_(*inputs.times, inputs.study.scale),
        cost_(scaled_),
        problem(search_problem(inputs, cost_)),
        objective(inputs, problem) {
    problem.objective = &objective;
  }
  PlanSearch(const PlanSearch&) = delete;
  PlanSearch& operator=(const PlanSearch&) = delete;

 private:
  const ScaledCost scaled_;
  const RememberedCost cost_;

 public:
  SearchProblem problem;
  const RunObjective objective;
};

}  // namespace wt
