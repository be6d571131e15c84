// Measured steps of one MoE model under several placements of its experts, and what is needed to predict them: the
// rows that each rank had, and the shape and layout behind a model's name. Three tables, columns in any order:
//   step times   dataset, method, model_name, aux_loss, avg_time_ms, and of a variant of a known model base_model,
//                experts, top_k; others are ignored
//   rank loads   method, model, layer, iter, r0, r1, ...: rows of each rank's experts in one microbatch
//   setups       model_name, layers, hidden, ...; see configs/measurements/routing_setups.csv
#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sim/measurements/run_rows.hpp"
#include "sim/program/routing/rank_totals.hpp"

namespace wt {

struct PlacedStep {
  std::int64_t line = 0;  ///< in the file
  std::string dataset, method, model;
  double aux_loss = 0;                  ///< weight of the balancing loss
  double seconds = 0;                   ///< mean over the iterations
  std::string base = {};                ///< the model whose variant this is; empty = it is known by its own name
  std::int64_t experts = 0, top_k = 0;  ///< of the variant; 0 = as the base has
  std::string unusable = {};            ///< why nothing can be predicted of this row
};

/// One model as it was trained: SwiGLU experts in bf16, FSDP over all GPUs, every block computed again in backward.
struct RoutedSetup {
  RunRow run;
  std::string base = {};      ///< the model whose variant this is; empty = none
  std::string loads_dataset;  ///< what rank loads of this model were recorded on
  double loads_aux_loss = 0;
  bool beside = false;  ///< from the folder of the step times, not the tree's
};

/// Throws Error{usage} naming `where`: impossible shapes and layouts, more than can be replayed in a minute or so.
void check_setup(const RoutedSetup& setup, const std::string& where);

/// What is known besides step times, by model; loads by model and method.
struct RoutedContext {
  std::map<std::string, RoutedSetup> setups;
  std::map<std::pair<std::string, std::string>, RankLoads> loads;
  std::vector<ModelSpec> models = {};  ///< shapes alone, for names that no setup has
  std::vector<std::string> refused;    ///< what is wrong with lines of these tables that were not taken
};

/// Every row, in order; one without a time above 0 says so in `unusable`. Throws Error{usage} as read_csv does.
std::vector<PlacedStep> read_placed_steps(const std::filesystem::path& file);

/// Of the last kSettled iterations of each recording. A recording with a line that cannot be read, a layer or iteration
/// twice or missing, or one without rows is left out, and `refused` says why. Throws Error{usage} as read_csv does, and
/// for rank columns that are not r0 to r(n-1).
std::map<std::pair<std::string, std::string>, RankLoads> read_rank_loads(const std::filesystem::path& file,
                                                                         std::vector<std::string>& refused);
/// As many as the artifact's own figure of the fullest rank takes; a re-planner still follows its first loads before.
constexpr std::size_t kSettled = 5;

/// Impossible shapes and layouts, a batch that ranks and microbatches do not divide and a model named twice are left
/// out, and `refused` says why. Throws Error{usage} as read_csv does.
std::map<std::string, RoutedSetup> read_routed_setups(const std::filesystem::path& file,
                                                      std::vector<std::string>& refused);

/// Tables of loads and setups in the folder of `file`, told by their headers, and for what those do not have, the ones
/// in `reference` (a folder).
RoutedContext read_routed_context(const std::filesystem::path& file, const std::filesystem::path& reference);

}  // namespace wt
