// Measured steps of MoE models under several placements of experts, and what their prediction needs: the rows of each
// rank, and each model's shape and layout. Three tables, columns in any order:
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
  std::string base = {};                ///< the model of which this is a variant; empty = known by its own name
  std::int64_t experts = 0, top_k = 0;  ///< of the variant; 0 = as in the base
  std::string unusable = {};            ///< why the row cannot be predicted; empty = it can
};

/// One model as it was trained: SwiGLU experts in bf16, FSDP over all GPUs, backward recomputes every block.
struct RoutedSetup {
  RunRow run;
  std::string base = {};      ///< the model of which this is a variant; empty = none
  std::string loads_dataset;  ///< data set on which rank loads of this model were recorded
  double loads_aux_loss = 0;
  bool beside = false;  ///< from the folder of the step times, not from the reference folder
};

/// Throws Error{usage} naming `where` for impossible shapes and layouts, and for those too large to replay in about a
/// minute.
void check_setup(const RoutedSetup& setup, const std::string& where);

/// What is known apart from step times: setups by model, loads by model and method.
struct RoutedContext {
  std::map<std::string, RoutedSetup> setups;
  std::map<std::pair<std::string, std::string>, RankLoads> loads;
  std::vector<ModelSpec> models = {};  ///< shapes alone, for names without a setup
  std::vector<std::string> refused;    ///< what is wrong with lines of these tables that were left out
};

/// Every row, in order. `unusable` says so if a row has no time above 0. Throws Error{usage} as read_csv does.
std::vector<PlacedStep> read_placed_steps(const std::filesystem::path& file);

/// Loads of the last kSettled iterations of each recording. `refused` says which recordings are left out: those with an
/// unreadable line, a repeated or missing layer or iteration, or without rows. Throws Error{usage} as read_csv does,
/// and for rank columns that are not r0 to r(n-1).
std::map<std::pair<std::string, std::string>, RankLoads> read_rank_loads(const std::filesystem::path& file,
                                                                         std::vector<std::string>& refused);
/// As many iterations as the artifact uses for its own figure of the fullest rank. In earlier iterations, a re-planner
/// still follows the first loads.
constexpr std::size_t kSettled = 5;

/// `refused` says which setups are left out: impossible shapes and layouts, a batch that ranks and microbatches do not
/// divide, a model named twice. Throws Error{usage} as read_csv does.
std::map<std::string, RoutedSetup> read_routed_setups(const std::filesystem::path& file,
                                                      std::vector<std::string>& refused);

/// Reads the tables of loads and setups in the folder of `file`, which it tells by their headers. Entries that these
/// lack come from the folder `reference`.
RoutedContext read_routed_context(const std::filesystem::path& file, const std::filesystem::path& reference);

}  // namespace wt
