// Training runs with their power: the columns of training runs (docs/validate.md), and measured_at, cooling, runs,
// watts_per_gpu, joules_per_token, lora_rank, assumed (what the table's maker assumes);
// configs/measurements/energy.csv.
#pragma once
#include <cstdint>
#include <filesystem>
#include <vector>

#include "sim/cost/power/node_power.hpp"
#include "sim/measurements/run_rows.hpp"

namespace wt {

struct EnergyRow {
  RunRow run;           ///< unusable if the power is, too
  bool at_node = true;  ///< at the input of whole nodes; otherwise of the GPUs alone
  NodeCooling cooling = NodeCooling::air;
  std::int64_t runs = 1;       ///< repeated runs that the figures are means of
  double gpu_W = 0;            ///< over the GPUs of the run, mean while it trains
  double token_J = 0;          ///< 0 = not stated
  std::int64_t lora_rank = 0;  ///< of adapters on attention's projections, with the weights frozen; 0 = all is trained
};

/// Every row of the table, in order. Throws Error{usage} as read_csv does.
std::vector<EnergyRow> read_energy_rows(const std::filesystem::path& file);

}  // namespace wt
