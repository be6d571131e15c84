// Measured training steps: one row per run. Two schemas of CSV, told apart by their headers:
//   training runs     columns by name (docs/validate.md), an empty cell = unknown;
//                     configs/measurements/training_runs.csv
//   simulator tables  source, model, gpu, n_gpus, parallelism, batch/seq, precision, measured_metric, measured_value,
//                     predicted_value: "gpt h1024 l12 a16", "TP2 DP1 PP2 full-recompute 1F1B",
//                     "batch 16 mbs 8 seq 1024"; configs/measurements/simulator_tables.csv
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "configs/files/layout.hpp"
#include "configs/files/model.hpp"
#include "configs/files/optimizer.hpp"
#include "configs/files/pipeline_layout.hpp"
#include "configs/files/precisions.hpp"
#include "configs/files/recompute.hpp"
#include "configs/files/stack.hpp"
#include "sim/cost/collectives/interconnect.hpp"
#include "sim/cost/memory/memory_forecast.hpp"

namespace wt {

/// What a row says of its run where its stack's file says what most runs do.
struct RowStack {
  std::optional<AttentionKernels> attention = {};
  std::optional<WeightGradients> weight_gradients = {};
  std::optional<bool> dropout = {};
  std::optional<bool> grouped_products = {};     ///< of experts; false: one product for each expert
  std::optional<double> logit_bytes = {};        ///< MemoryFacts::logit_bytes
  std::optional<std::int64_t> loss_chunks = {};  ///< MemoryFacts::loss_chunks
};

struct RunRow {
  std::int64_t line = 0;  ///< in the file
  std::string id;         ///< row_id of tables that have one
  std::string name, source, framework, gpu;
  Interconnect interconnect;
  std::string group;   ///< framework and width of the model: rows with similar errors
  std::string origin;  ///< who published it (Origins)
  std::int64_t gpus = 0, gpus_per_node = 8;
  ModelSpec model;
  std::int64_t seq = 0;  ///< tokens of a sequence

  std::int64_t dp = 1, tp = 1, pp = 1, cp = 1;  ///< dp * tp * pp * cp = gpus
  Schedule schedule = Schedule::one_f_one_b;
  std::int64_t vp = 1;             ///< layer chunks per pipeline stage (interleaved schedule)
  PipelineLayout pipeline_layout;  ///< layers of stages and chunks, if the source or its recipe says so
  std::int64_t ep = 1;             ///< divides dp * cp, or dp * cp * tp with whole_experts
  bool whole_experts = false;      ///< tensor ranks have experts of their own (etp 1); else they split
                                   ///< each
  bool sequence_parallel = false;  ///< norms and residuals are split over tp (Korthikanti et al. 2022)
  int zero_stage = 0;  ///< 0 = replicas, 1 = sharded optimizer state, 3 = FSDP: sharded parameters and gradients, too
  std::int64_t shard_group = 1;  ///< ranks of dp * cp that hold one copy of the sharded state; fewer than all = hybrid
  /// Experts are sharded over the shard group in addition to expert parallelism (Transformer Engine's recipes: a mesh
  /// of dp x ep), not inside it.
  bool experts_beside_shards = false;
  std::int64_t microbatch = 0;    ///< sequences per data-parallel rank
  std::int64_t accumulation = 0;  ///< microbatches per step
  std::int64_t global_batch = 0;  ///< sequences per step
  Recompute recompute;
  std::string recompute_text;  ///< as published; empty = not stated
  PrecisionRecipe precision;   ///< by its name in a run file
  double gradient_bytes = 4;   ///< per element of a reduced gradient
  Dispatcher dispatcher = Dispatcher::alltoall;
  CudaGraphs cuda_graphs = CudaGraphs::none;
  bool exchange_overlapped = false;  ///< rows travel while another microbatch is computed
  enum class Routing { unsaid, balanced, natural } routing = Routing::unsaid;  ///< of MoE models; balanced = forced
  double capacity_factor = 0;  ///< most rows of an expert over the balanced number, others are dropped; 0 = no limit

  double step_s = 0;  ///< 0 = not measured
  MemoryOf memory_of = MemoryOf::nothing;
  double memory_bytes = 0;
  enum class Outcome { unsaid, ran, out_of_memory } outcome = Outcome::unsaid;
  double gpu_bytes = 0;  ///< memory of one GPU, if `gpu` says it; 0 = unknown
  OptimizerKind optimizer = OptimizerKind::adamw;
  bool orthogonalize_everywhere = false;  ///< OptimizerSpec::orthogonalize_everywhere
  double offload_fraction = 0;            ///< share of the optimizer's state in host memory
  RowStack stack = {};

  std::vector<std::string> assumed;  ///< properties that the source does not state and this row assumes
  std::string unusable = {};         ///< why the row cannot be predicted: what is missing or contradictory

  std::int64_t tokens() const { return global_batch * seq; }  ///< per step
};

/// Whether the layers do not divide evenly over the pipeline's chunks. Frameworks then count embedding and output
/// projection as layers (Megatron-Core: account_for_embedding_in_pipeline_split, pipeline_model_parallel_layout). The
/// 126 layers of Llama 3.1 and the 70 of BLOOM were chosen for this: both ends take the place of layers, so their
/// chunks have fewer layers.
bool ends_count_as_layers(const RunRow& row);

/// RunRow::group of a row.
std::string run_group(const RunRow& row);

/// Every row of the table, in order. `unusable` says so if a row is broken, incomplete or contradictory. Throws
/// Error{usage} as read_csv does.
std::vector<RunRow> read_run_rows(const std::filesystem::path& file);

/// Rows of the tables of training runs in a folder like configs/measurements.
std::vector<RunRow> published_training_runs(const std::filesystem::path& measurements);
/// Rows of the tables to which memory models are fitted. The other tables judge these models.
std::vector<RunRow> published_memory_runs(const std::filesystem::path& measurements);
/// Training runs and simulator tables: the rows to which step time models are fitted.
std::vector<RunRow> published_runs(const std::filesystem::path& measurements);

}  // namespace wt
