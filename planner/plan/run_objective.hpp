// What the search of a plan makes smallest: the expected days of the whole run, or its energy. Money of given GPUs
// grows with the days and nothing else, so that the layout of the fewest days is the cheapest, too. Energy counts lost
// steps as time without steps.
//
// Days are steps x step / goodput, by the closed form, where the saves and restarts of this layout and the replicas it
// may lose decide the goodput. The save interval is not rounded to whole steps here, so that days are proportional to
// the step; a plan's cadence is.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <tuple>

#include "planner/plan/checkpoint_times.hpp"
#include "planner/plan/plan.hpp"

namespace wt {

class RunObjective : public Objective {
 public:
  /// Both must outlive it. Throws Error{usage} where energy is to be made smallest without its prices.
  RunObjective(const PlanInputs& inputs, const SearchProblem& problem);
  std::string unit() const override { return energy() ? "kWh" : "days"; }
  double of(const Layout& layout, const Simulated& step) const override;
  double least(const Layout& layout, const LeastStep& step) const override;
  double least_of_any(const LeastStep& step) const override;
  bool counts_computing() const override { return energy(); }

 private:
  /// What of a layout decides how it saves and restarts.
  using Key = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t,
                         std::int64_t, std::int64_t, std::int64_t, bool>;
  struct Protection {
    CheckpointSeconds seconds;
    CadenceInput quickest;              ///< without the broadcast of a restart, which has to be simulated
    std::optional<CadenceInput> whole;  ///< with it
    double interval_s = 0;
  };
  Protection& protection_of(const Layout& layout) const;
  CadenceInput protected_input(const Layout& layout, const CheckpointSeconds& seconds, double broadcast_s) const;
  double days(const CadenceInput& in, double interval_s, double step_s) const;
  /// `step_J`: of the whole job in a step, beyond what it takes when it stands still.
  double in_unit(double days, double step_J) const;
  bool energy() const { return inputs_.study.prefer == Prefer::energy; }
  /// What a step takes at least, beyond standing still: what is not surely computing may be the cheaper of both.
  double least_J(const LeastStep& step) const;

  const PlanInputs& inputs_;
  const SearchProblem& problem_;
  double steps_;
  double best_goodput_ = 1;  ///< of all layouts
  double idle_W_ = 0, compute_W_ = 0, communicate_W_ = 0;
  mutable std::map<Key, Protection> known_;
};

}  // namespace wt
