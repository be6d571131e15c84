// The cost of a planned run: GPU-hours, money, energy and carbon as distributions. Each simulated run of a study is one
// draw: its failures, a step time from the step's interval, and prices from their ranges. There are no default prices:
// items without a price are listed and cost nothing. The estimate takes as long as the runs.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "configs/files/charges.hpp"
#include "sim/cost/power/node_power.hpp"
#include "sim/months/simulate_run.hpp"

namespace wt {

inline constexpr double kMonth_s = 30 * 86400.0;  ///< the month of storage prices

struct StepUse : StepShares {
  double low_s = 0, high_s = 0;  ///< 80 % interval of RunScenario::step_s
};

struct CostInput {
  RunScenario scenario;
  StepUse step;
  std::int64_t runs = 1000;
  NumberedRun run = seeded_runs(1);  ///< simulates run i with any step time
  std::uint64_t step_seed = 0;  ///< of the step's error: inputs with equal seeds have the same relative error in draw i
  std::uint64_t price_seed = 0;  ///< of prices given as ranges
  std::int64_t gpus = 0, nodes = 0, spare_gpus = 0, spare_nodes = 0;
  double kept_bytes = 0;   ///< checkpoints kept during the run
  double taken_bytes = 0;  ///< moved out of the site at its end
  std::optional<PriceSpec> prices;
};

struct CostRange {
  double p05 = 0, p50 = 0, p95 = 0, mean = 0;
};

/// Means over the draws.
struct BucketCost {
  double gpu_hours = 0;
  double money = 0;  ///< of its GPU-hours and of spare nodes in that time
  double kWh = 0;    ///< with hosts, spare nodes and the building
};

/// Money of a draw = `priced_hours` x price of a GPU-hour + `other_money`.
struct CostDraw {
  double gpu_hours = 0;
  double priced_hours = 0;  ///< hours at the middle of the price's range; includes spares if they cost as much as GPUs
  double other_money = 0;
  double kWh = 0;
};

struct Cost {
  std::optional<PriceSpec> prices;
  CostRange days;                   ///< of wall time
  CostRange gpu_hours;              ///< without spare nodes
  double spare_gpu_hours = 0;       ///< mean
  std::optional<CostRange> money;   ///< empty if nothing has a price
  std::optional<CostRange> energy;  ///< kWh; empty if the power is unknown
  std::optional<CostRange> carbon;  ///< kg
  std::array<BucketCost, kBuckets> buckets{};
  double storage_money = 0, egress_money = 0;  ///< means; buckets, storage and egress sum to money.mean
  std::vector<std::string> not_priced;         ///< "storage (storage_tb_month)"
  std::vector<CostDraw> draws;                 ///< draw i belongs to run i
};

/// Whether anything has a price, so that there is Cost::money.
bool costs_money(const std::optional<PriceSpec>& prices);

/// Throws Error{usage} as simulate_run.
Cost estimate_cost(const CostInput& input);

/// Money of a draw at this price of a GPU-hour.
double money_at(const CostDraw& draw, double gpu_hour);
/// The price of a GPU-hour at which the cost's P50 is `money`; empty if the rest alone costs more. If the price is a
/// range, this is its middle, with the width in proportion.
std::optional<double> break_even_gpu_hour(const Cost& cost, double money);

}  // namespace wt
