// Measured training steps: one row a run. Two schemas of CSV, told apart by their headers:
//   training runs      columns by name (docs/validate.md), an empty cell = unknown;
//   configs/measurements/training_runs.csv simulator tables   source, model, gpu, n_gpus, parallelism, batch/seq,
//   precision, measured_metric, measured_value,
//                      predicted_value: "gpt h1024 l12 a16", "TP2 DP1 PP2 full-recompute 1F1B", "batch 16 mbs 8 seq
//                      1024"; configs/measurements/simulator_tables.csv
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "configs/files/layout.hpp"
#include "configs/files/model.hpp"
#include "configs/files/pipeline_layout.hpp"
#include "configs/files/precisions.hpp"
#include "configs/files/recompute.hpp"
#include "sim/cost/collectives/interconnect.hpp"
#include "sim/cost/memory/memory_forecast.hpp"

namespace wt {

struct RunRow {
  std::int64_t line = 0;  ///< in the file
  std::string id;         ///< row_id of tables that have one
  std::string name, source, framework, gpu;
  Interconnect interconnect;
  std::string group;   ///< framework and width of the model: rows that err alike
  std::string origin;  ///< who published it (Origins)
  std::int64_t gpus = 0, gpus_per_node = 8;
  ModelSpec model;
  std::int64_t seq = 0;  ///< tokens of a sequence

  std::int64_t dp = 1, tp = 1, pp = 1, cp = 1;  ///< dp * tp * pp * cp = gpus
  std::int64_t vp = 1;                          ///< layer chunks a pipeline stage (interleaved schedule)
  PipelineLayout pipeline_layout;               ///< what these have, where the source or its recipe says it
  std::int64_t ep = 1;                          ///< divides dp * cp, or dp * cp * tp with whole_experts
  bool whole_experts = false;                   ///< tensor ranks have experts of their own (etp 1), else cut each
  bool sequence_parallel = false;               ///< norms and residuals are split over tp (Korthikanti et al. 2022)
  int zero_stage = 0;  ///< 0 = replicas, 1 = optimizer state is sharded, 3 = FSDP: parameters and gradients, too
  std::int64_t shard_group = 1;  ///< ranks of dp * cp that hold one copy of what is sharded; fewer = hybrid
  /// Experts are cut over that group beside expert parallelism (Transformer Engine's recipes: a mesh of dp x ep), not
  /// inside it.
  bool experts_beside_shards = false;
  std::int64_t microbatch = 0;    ///< sequences of one data-parallel rank
  std::int64_t accumulation = 0;  ///< microbatches of one data-parallel rank a step
  std::int64_t global_batch = 0;  ///< sequences a step
  Recompute recompute;
  std::string recompute_text;  ///< as published; empty = not said
  PrecisionRecipe precision;   ///< by its word in a run file
  double gradient_bytes = 4;   ///< of an element that is reduced
  Dispatcher dispatcher = Dispatcher::alltoall;
  CudaGraphs cuda_graphs = CudaGraphs::none;
  bool exchange_overlapped = false;  ///< rows travel while another microbatch's are computed
  enum class Routing { unsaid, balanced, natural } routing = Routing::unsaid;  ///< of MoE models; balanced by force
  double capacity_factor = 0;  ///< rows that an expert takes over the balanced number; others are dropped; 0 = all

  double step_s = 0;  ///< 0 = not measured
  MemoryOf memory_of = MemoryOf::nothing;
  double memory_bytes = 0;

  std::vector<std::string> assumed;  ///< what the source does not say and this row takes for granted
  std::string unusable = {};         ///< why nothing can be predicted of this row: what is missing or contradictory

  std::int64_t tokens() const { return global_batch * seq; }  ///< a step
};

/// Whether layers do not go evenly over the pipeline's chunks. Frameworks then want embedding and output projection to
/// be counted as layers (Megatron-Core: account_for_embedding_in_pipeline_split, pipeline_model_parallel_layout), for
/// which Llama 3.1's 126 and BLOOM's 70 layers were chosen: these stand in place of layers, not beside a full share of
/// them.
bool ends_count_as_layers(const RunRow& row);

/// RunRow::group of a row.
std::string run_group(const RunRow& row);

/// Every row of the table, in order; a row that is broken, incomplete or contradictory says so in `unusable`. Throws
/// Error{usage} as read_csv does.
std::vector<RunRow> read_run_rows(const std::filesystem::path& file);

/// Of the tables of training runs in a folder as configs/measurements.
std::vector<RunRow> published_training_runs(const std::filesystem::path& measurements);
/// Of the tables that models of memory are fitted on; the others judge them.
std::vector<RunRow> published_memory_runs(const std::filesystem::path& measurements);
/// Training runs and the simulator tables: what models of step time are fitted on.
std::vector<RunRow> published_runs(const std::filesystem::path& measurements);

}  // namespace wt
