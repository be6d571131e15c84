// A run file: the model, data and layout that the trainer trains. The vocabulary is LLM Foundry's where it has one.
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
  /// model.peft_config: the model's weights are frozen, and adapters are trained.
  std::optional<LoraSpec> lora;
  std::string adapter_base;  ///< name of the base weights in the exported adapter; load_path says where they are
  Layout layout;
  /// The planner's best layouts for fewer ranks. After a loss of ranks the trainer prefers them to others of that size.
  std::vector<Layout> smaller_layouts;
  Precision precision = Precision::fp32;
  Precisions precisions{.fp32_products = NumberFormat::fp32};  ///< only simulated unless plain_precisions()
  bool pure_reduction = false;  ///< gradients are reduced in 16 bits (mixed_precision: PURE); only simulated
  /// Pieces of a microbatch's tokens whose logits exist at a time (MemoryFacts::loss_chunks), in place of what the
  /// stack does; our trainer: 1.
  std::optional<std::int64_t> loss_chunks;
  DeviceKind device = DeviceKind::cpu;
  OptimizerSpec optimizer;
  std::int64_t steps = 0;         ///< max_duration in batches ("40ba")
  std::int64_t seq = 0;           ///< max_seq_len
  std::int64_t global_batch = 0;  ///< sequences a step over all ranks
  /// device_train_microbatch_size is auto: layout.microbatch is a placeholder until choose_microbatch runs.
  bool microbatch_auto = false;
  std::uint64_t seed = 17;
  DatasetSpec dataset;  ///< no streams: no data, which a simulated run may have
  EvaluationSpec evaluation;
  std::int64_t save_interval = 0;  ///< steps between checkpoints, 0 = only at the end if save is on
  std::int64_t keep_checkpoints = 2;
  bool save = true;
  std::string save_folder;  ///< second destination of checkpoints: s3://bucket/folder or a folder; empty: none
  bool autoresume = true;   ///< false: does not resume from the output folder, and moves its content aside
  std::string load_path;  ///< Hugging Face folder, or its address (s3://), with the initial weights; empty = random by
                          ///< seed
  std::string export_path;  ///< Hugging Face folder, or its address, for the final weights; empty = none
  Precision export_precision = Precision::fp32;
  double dist_timeout_s = 600;  ///< a longer collective ends the run, with an error that names the missing ranks
  ResilienceSpec resilience;
  LoggersSpec loggers;
  RehearsalSpec rehearsal;  ///< only used by windtunnel train --rehearse

  /// A rank's sequences, the same number on each, split into the microbatches of a step. Throws Error{usage} where the
  /// ranks do not divide the global batch: then see trainer/model/rank_work.hpp.
  Microbatches sequences() const;
  /// Microbatches of a rank in each step; the last one may be smaller.
  std::int64_t microbatches() const { return sequences().count; }
  /// One rank's tokens in each of them; under context parallelism, of its pieces of sequences.
  Microbatches tokens() const {
    const Microbatches n = sequences();
    return {n.count, n.each * seq / layout.context, n.last * seq / layout.context};
  }
  /// Tokens of a full microbatch.
  std::int64_t tokens_per_microbatch() const { return layout.microbatch * seq / layout.context; }
  std::int64_t tokens_per_step() const { return global_batch * seq; }
  double tokens_per_s_per_gpu(double step_s) const {
    return static_cast<double>(tokens_per_step()) / (step_s * static_cast<double>(layout.world()));
  }
  /// Model FLOPs per token of the model, or of its adapters (adapted_modules.hpp).
  double flops_per_token() const;
  /// Samples that a step draws: more than its sequences where examples are packed.
  std::int64_t samples_per_step() const { return dataset.samples_drawn(global_batch); }
};

/// Settings that the trainer lacks and that are only simulated, in the words of run files; empty = the run can be
/// trained. For the model see ModelSpec::untrainable.
std::vector<std::string> untrainable(const RunSpec& run);
/// Throws Error{usage}: unknown keys, units, a batch that the ranks do not divide, impossible layouts.
RunSpec read_run(const std::filesystem::path& file);
/// Parses the text of a run file; `origin` is its name in errors.
RunSpec run_from_text(const std::string& text, const std::filesystem::path& origin);
/// The same checks for a run that was changed in memory.
void check_run(const RunSpec& run, const std::string& where);
/// Writes a file for read_run.
std::string run_to_yaml(const RunSpec& run);

}  // namespace wt
