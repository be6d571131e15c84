// The optimizer of a run and its learning-rate schedule, in LLM Foundry's words.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "configs/files/duration.hpp"

namespace YAML {
class Emitter;
}

namespace wt {

/// muon: momentum, orthogonalised per matrix (Jordan 2024; at scale Liu et al. 2025, arXiv 2502.16982); embedding,
/// output projection, norms and biases use AdamW. Only simulated. lionw: the sign of a momentum, with decoupled decay
/// (Chen et al. 2023, arXiv 2302.06675); one moment per parameter.
enum class OptimizerKind { adamw, lionw, muon };
std::string to_string(OptimizerKind kind);

/// The learning rate after the warm-up: half a cosine, a line, constant, or 1 / sqrt of the time.
enum class ScheduleKind { cosine, linear, constant, inverse_sqrt };
std::string to_string(ScheduleKind kind);  ///< "cosine_with_warmup", ...

struct OptimizerSpec {
  OptimizerKind kind = OptimizerKind::adamw;
  /// Under muon every rank orthogonalises every matrix of its shard group. Otherwise a matrix has one owner.
  bool orthogonalize_everywhere = false;
  /// Share of the optimizer's state that is in host memory and updated by the CPU (Ren et al. 2021, ZeRO-Offload, arXiv
  /// 2101.06840; Megatron-Core's optimizer_offload_fraction). Only simulated.
  double offload_fraction = 0;
  double lr = 1e-3;
  double beta1 = 0.9, beta2 = 0.95;
  double eps = 1e-8;
  /// A step multiplies weights by 1 - weight_decay x its learning rate, as PyTorch's AdamW does. Decoupled decay of a
  /// file (1 - weight_decay x rate / lr) is divided by lr when it is read, which gives the same numbers.
  double weight_decay = 0.1;
  double clip_norm = 1.0;  ///< 0 = no clipping
  // Times are in batches and may have a fraction (RunClock).
  ScheduleKind schedule = ScheduleKind::cosine;
  double warmup_steps = 0;
  double schedule_steps = 0;        ///< t_max, the end of the schedule; 0 = the end of the run
  double final_lr_fraction = 0.1;   ///< alpha_f: final lr over lr; for inverse_sqrt its limit at infinite time
  double initial_lr_fraction = 1;   ///< alpha_i of linear, alpha of constant: lr after the warm-up, over lr
  double scale_steps = 0;           ///< t_scale of inverse_sqrt
  double cooldown_steps = 0;        ///< t_cooldown of inverse_sqrt, before its end
  double cooldown_lr_fraction = 0;  ///< alpha_f_cooldown of inverse_sqrt
  /// The time of the first step in the schedule: 1, or 0 as in Composer, whose warm-up starts with rate 0.
  std::int64_t first_step = 1;
  bool one_moment() const { return kind == OptimizerKind::lionw; }
};

/// Reads the keys optimizer, scheduler and algorithms of a run file. Throws Error{usage}.
void read_optimizer(YamlMap& run, const RunClock& clock, OptimizerSpec& out);
/// Writes these keys. `step_tokens`: tokens of a batch, for times with a fraction of one.
void optimizer_to_yaml(const OptimizerSpec& optimizer, std::int64_t step_tokens, YAML::Emitter& out);
/// A time in batches as a run file writes it: "20ba", or in tokens where it has a fraction.
std::string duration_text(double batches, std::int64_t step_tokens);
/// Names of schedulers in run files.
const std::vector<std::string>& schedule_kind_names();
/// Throws Error{usage} with `where` for an impossible schedule: no t_scale, alphas that rise.
void check_schedule(const OptimizerSpec& optimizer, const std::string& where);

}  // namespace wt
