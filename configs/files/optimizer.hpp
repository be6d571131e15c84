// The optimizer of a run and the learning rate of its steps, by the names of LLM Foundry.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "configs/files/duration.hpp"

namespace YAML {
class Emitter;
}

namespace wt {

/// muon: momentum, orthogonalised matrix by matrix (Jordan 2024; at scale Liu et al. 2025, arXiv 2502.16982);
/// embedding, output projection, norms and biases stay on AdamW. Simulated alone.
/// lionw: the sign of a momentum, with decoupled decay (Chen et al. 2023, arXiv 2302.06675); one moment a parameter.
enum class OptimizerKind { adamw, lionw, muon };
std::string to_string(OptimizerKind kind);

/// Behind the warm-up: half a cosine, a line, nothing, or 1 / sqrt of the time.
enum class ScheduleKind { cosine, linear, constant, inverse_sqrt };
std::string to_string(ScheduleKind kind);  ///< "cosine_with_warmup", ...

struct OptimizerSpec {
  OptimizerKind kind = OptimizerKind::adamw;
  /// Share of the optimizer's states that lies in the host's memory and is updated by its CPU (Ren et al. 2021,
  /// ZeRO-Offload, arXiv 2101.06840; Megatron-Core's optimizer_offload_fraction). Simulated alone.
  double offload_fraction = 0;
  double lr = 1e-3;
  double beta1 = 0.9, beta2 = 0.95;
  double eps = 1e-8;
  /// A step multiplies weights by 1 - weight_decay x its learning rate, as PyTorch's AdamW does. What files call
  /// decoupled (1 - weight_decay x rate / lr) is divided by lr when it is read: the same numbers.
  double weight_decay = 0.1;
  double clip_norm = 1.0;  ///< 0 = no clipping
  // Times are in batches, and may end inside of one (RunClock).
  ScheduleKind schedule = ScheduleKind::cosine;
  double warmup_steps = 0;
  double schedule_steps = 0;        ///< t_max, where the schedule ends; 0 = with the run
  double final_lr_fraction = 0.1;   ///< alpha_f: lr at the end, over lr; of inverse_sqrt: after infinite time
  double initial_lr_fraction = 1;   ///< alpha_i of linear, alpha of constant: lr after the warm-up, over lr
  double scale_steps = 0;           ///< t_scale of inverse_sqrt
  double cooldown_steps = 0;        ///< t_cooldown of inverse_sqrt, before its end
  double cooldown_lr_fraction = 0;  ///< alpha_f_cooldown of inverse_sqrt
  /// What the first step counts as: 1, or 0 as in Composer, whose first step of a warm-up has rate 0.
  std::int64_t first_step = 1;
  bool one_moment() const { return kind == OptimizerKind::lionw; }
};

/// Keys optimizer, scheduler and algorithms of a run file. Throws Error{usage}.
void read_optimizer(YamlMap& run, const RunClock& clock, OptimizerSpec& out);
/// The same keys, which read_optimizer reads back to the same. `step_tokens`: of a batch, for times that end inside
/// one.
void optimizer_to_yaml(const OptimizerSpec& optimizer, std::int64_t step_tokens, YAML::Emitter& out);
/// A time in batches as a run file says it: "20ba", or in tokens where it ends inside a batch.
std::string duration_text(double batches, std::int64_t step_tokens);
/// Names of schedulers in run files.
const std::vector<std::string>& schedule_kind_names();
/// Throws Error{usage} naming `where` where the schedule makes no sense: no t_scale, alphas that rise.
void check_schedule(const OptimizerSpec& optimizer, const std::string& where);

}  // namespace wt
