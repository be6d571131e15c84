// A run file: what the trainer trains, on which data, in which layout. The vocabulary is LLM Foundry's where it has
// one.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "configs/files/dataset.hpp"
#include "configs/files/device_kind.hpp"
#include "configs/files/evaluation_spec.hpp"
#include "configs/files/layout.hpp"
#include "configs/files/loggers.hpp"
#include "configs/files/lora.hpp"
#include "configs/files/microbatches.hpp"
#include "configs/files/model.hpp"
#include "configs/files/optimizer.hpp"
#include "configs/files/precisions.hpp"
#include "configs/files/rehearsal_spec.hpp"
#include "configs/files/resilience.hpp"

namespace wt {

struct RunSpec {
  std::string name;
  ModelSpec model;
  /// model.peft_config: the model's weights are frozen, and adapters beside them are trained.
  std::optional<LoraSpec> lora;
  std::string adapter_base;  ///< the weights that the adapter is put on; the trainer finds them by load_path
  Layout layout;
  /// What a planner found best where fewer ranks are left; the trainer takes them before others of as many ranks.
  std::vector<Layout> smaller_layouts;
  Precision precision = Precision::fp32;
  Precisions precisions{.fp32_products = NumberFormat::fp32};  ///< what is not plain_precisions() is simulated alone
  bool pure_reduction = false;  ///< gradients are reduced in 16 bits (mixed_precision: PURE); simulated alone
  DeviceKind device = DeviceKind::cpu;
  OptimizerSpec optimizer;
  std::int64_t steps = 0;         ///< max_duration in batches ("40ba")
  std::int64_t seq = 0;           ///< max_seq_len
  std::int64_t global_batch = 0;  ///< sequences a step over all ranks
  /// Of them this rank's, where the replicas that are left have unequally many (trainer/launch/worker.cpp); in no file.
  /// 0: every rank has equally many.
  std::int64_t rank_sequences = 0;
  /// Whether samples are read to max_seq_len tokens, the last of which then has no target, as in data sets of LLM
  /// Foundry; else to one token more. Found in the data (trainer/model/batch.hpp); in no file.
  bool last_target_missing = false;
  /// device_train_microbatch_size is auto: layout.microbatch stands for it until it is found (choose_microbatch).
  bool microbatch_auto = false;
  std::uint64_t seed = 17;
  DatasetSpec dataset;  ///< without a stream: none, as a simulated run may have it
  EvaluationSpec evaluation;
  std::int64_t save_interval = 0;  ///< steps between checkpoints, 0 = only at the end if save is on
  std::int64_t keep_checkpoints = 2;
  bool save = true;
  std::string save_folder;  ///< where checkpoints go, too: s3://bucket/folder, or a folder; empty: nowhere else
  bool autoresume = true;   ///< false: never goes on from what the output folder holds; that is moved aside
  std::string load_path;  ///< Hugging Face folder, or its address (s3://), whose weights a new run starts from; empty =
                          ///< drawn by seed
  std::string
      export_path;  ///< Hugging Face folder, or its address, that the weights are written to at the end; empty = none
  Precision export_precision = Precision::fp32;
  double dist_timeout_s = 600;  ///< a collective that takes longer ends the run and names who is missing
  ResilienceSpec resilience;
  LoggersSpec loggers;
  RehearsalSpec rehearsal;  ///< only read by windtunnel train --rehearse

  /// Sequences of a rank in the microbatches of a step.
  Microbatches sequences() const {
    return Microbatches::split(rank_sequences > 0 ? rank_sequences : global_batch / layout.data_ranks(),
                               layout.microbatch);
  }
  /// Microbatches a rank runs each step; the last one may be smaller.
  std::int64_t microbatches() const { return sequences().count; }
  /// Tokens of one rank in them: pieces of sequences under context parallelism.
  Microbatches tokens() const {
    const Microbatches n = sequences();
    return {n.count, n.each * seq / layout.context, n.last * seq / layout.context};
  }
  /// Those of a microbatch that is not a smaller last one.
  std::int64_t tokens_per_microbatch() const { return layout.microbatch * seq / layout.context; }
  std::int64_t tokens_per_step() const { return global_batch * seq; }
  /// Of what it trains: the model, or adapters beside it (adapted_modules.hpp).
  double flops_per_token() const;
  /// Samples of the data set that a step draws: of packed examples more than it has sequences.
  std::int64_t samples_per_step() const { return dataset.samples_drawn(global_batch); }
};

/// What of it the trainer has not and is simulated alone, in the words of run files; empty = it trains. Models say
/// theirs themselves (ModelSpec::untrainable).
std::vector<std::string> untrainable(const RunSpec& run);
/// Throws Error{usage}: unknown keys, units, a batch that the ranks do not divide, impossible layouts.
RunSpec read_run(const std::filesystem::path& file);
/// What a run file would say; `origin` stands for its name.
RunSpec run_from_text(const std::string& text, const std::filesystem::path& origin);
/// The same checks on a run that was changed in memory.
void check_run(const RunSpec& run, const std::string& where);
/// The run as a file that read_run reads back to the same run.
std::string run_to_yaml(const RunSpec& run);

}  // namespace wt
