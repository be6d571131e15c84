// Seconds of a training step whose experts' rows differ from rank to rank: the work of its step program (sim/program),
// every routed op at the rows of the fullest rank, as all others wait for it: the experts' products grow with its rows,
// and so do the all-to-alls, which end when the rank that receives most has received it. Gathers and reductions of
// weights are left to what a stack takes beyond its work (see routing.hpp).
#pragma once
#include <utility>
#include <vector>

#include "configs/spec/data_sheet.hpp"
#include "configs/spec/layout.hpp"
#include "sim/cost/collectives/collective_estimator.hpp"
#include "sim/cost/kernels/item_times.hpp"
#include "sim/measurements/routing_rows.hpp"
#include "sim/program/build/build.hpp"

namespace wt {

class RoutedStep {
 public:
  /// All three must outlive this. Throws Error{usage} without a data sheet of the GPU.
  RoutedStep(const RunRow& run, const ItemTimes& gpus, const CollectiveEstimator& fabric);

  struct Seconds {
    double all = 0;
    double routed = 0;  ///< the part of `all` that grows with rows: experts and their all-to-alls
  };
  /// Mean over iterations. A model with more layers than the recording reuses them in order.
  Seconds seconds(const FullestShares& fullest) const;
  /// All ranks have the same rows.
  Seconds balanced() const { return seconds({{1.0}}); }

 private:
  double op_s(const Op& op, double rows) const;
  double item_s(const WorkItem& item, double rows) const;
  bool routed(const Op& op) const;

  const RunRow& run_;
  const ItemTimes& gpus_;
  const CollectiveEstimator& fabric_;
  CollectiveMachine machine_;
  DataSheet sheet_;
  ProgramSet set_;
  double fixed_s_ = 0;
  std::vector<std::vector<std::pair<const Op*, int>>> routed_;  ///< of each layer, in order, and how often in a step
};

}  // namespace wt
