// What a planned run costs: GPU-hours, money, energy and carbon as distributions. Each of a study's simulated runs is
// one draw: its failures, a step time out of the step's interval, and prices out of their ranges. What has no price is
// named and costs nothing here; nothing has a default. It costs as much time as the runs.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "configs/files/charges.hpp"
#include "sim/months/simulate_run.hpp"

namespace wt {

inline constexpr double kMonth_s = 30 * 86400.0;  ///< that storage is charged by

/// A step of the critical rank, which stands for all; the rest of it the GPU waits without kernels.
struct StepUse {
  double low_s = 0, high_s = 0;             ///< 80 % interval of RunScenario::step_s
  double computing = 1, communicating = 0;  ///< shares of the step; communicating: it waits
};

struct CostInput {
  RunScenario scenario;
  StepUse step;
  std::int64_t runs = 1000;
  NumberedRun run = seeded_runs(1);  ///< with any step
  std::uint64_t step_seed = 0;       ///< of the step's error: with equal ones draw i is as far off in both
  std::uint64_t price_seed = 0;      ///< of prices that are ranges
  std::int64_t gpus = 0, nodes = 0, spare_gpus = 0, spare_nodes = 0;
  double kept_bytes = 0;   ///< of checkpoints, through the run
  double taken_bytes = 0;  ///< out of the site at its end
  std::optional<PriceSpec> prices;
};

struct CostRange {
  double p05 = 0, p50 = 0, p95 = 0, mean = 0;
};

/// Mean over the draws.
struct BucketCost {
  double gpu_hours = 0;
  double money = 0;  ///< of these and of the spare nodes meanwhile
  double kWh = 0;    ///< with hosts, spare nodes and the building
};

/// Money of a draw = `priced_hours` x price of a GPU-hour + `other_money`.
struct CostDraw {
  double gpu_hours = 0;
  double priced_hours = 0;  ///< in units of the middle of the price's range; spares in it where they cost as GPUs
  double other_money = 0;
  double kWh = 0;
};

struct Cost {
  std::optional<PriceSpec> prices;
  CostRange days;                   ///< of wall time
  CostRange gpu_hours;              ///< without spare nodes
  double spare_gpu_hours = 0;       ///< mean
  std::optional<CostRange> money;   ///< where anything has a price
  std::optional<CostRange> energy;  ///< kWh, where the power is known
  std::optional<CostRange> carbon;  ///< kg
  std::array<BucketCost, kBuckets> buckets{};
  double storage_money = 0, egress_money = 0;  ///< mean; with the buckets' money they sum to money.mean
  std::vector<std::string> not_priced;         ///< "storage (storage_tb_month)"
  std::vector<CostDraw> draws;                 ///< draw i has run i
};

/// Whether anything of a run has a price, so that there is Cost::money.
bool costs_money(const std::optional<PriceSpec>& prices);

/// Throws Error{usage} as simulate_run.
Cost estimate_cost(const CostInput& input);

/// Money of a draw at such a price of a GPU-hour.
double money_at(const CostDraw& draw, double gpu_hour);
/// The price of a GPU-hour at which the cost's P50 is `money`; none where all else alone costs more. A range keeps its
/// width relative to its middle, which is the price returned.
std::optional<double> break_even_gpu_hour(const Cost& cost, double money);

}  // namespace wt
