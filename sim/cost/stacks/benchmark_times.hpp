// Benchmarks behind the times of steps, for any stack: kernels, collectives and rows sent one by one.
#pragma once
#include <memory>

#include "sim/cost/collectives/collective_estimator.hpp"
#include "sim/cost/collectives/row_messages.hpp"
#include "sim/cost/kernels/item_times.hpp"
#include "sim/cost/kernels/machine_model.hpp"

namespace wt {

struct BenchmarkTimes {
  std::shared_ptr<const ItemTimes> items;                  ///< published
  std::shared_ptr<const CollectiveEstimator> collectives;  ///< published, refined by this machine's measurements
  std::shared_ptr<const RowMessages> row_messages;         ///< published
  std::shared_ptr<const MachineModel> measured = nullptr;  ///< kernels of this machine; null = none

  bool operator==(const BenchmarkTimes&) const = default;  ///< the same estimators
};

}  // namespace wt
