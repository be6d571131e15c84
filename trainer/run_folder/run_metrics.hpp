// What a line of metrics.jsonl says of a step beyond what the executor measures. No LibTorch in it.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "configs/files/run.hpp"

namespace wt {

/// Rows of an expert group's most loaded rank over their mean, by the kept rows of the whole step that the tokens of
/// one source rank send; mean over the MoE layers, which take equally many rows. Empty where every rank has all
/// experts, and without MoE layers. `routing`: [microbatch][layer] -> rows by logical expert, as StepResult has them.
std::optional<double> expert_imbalance(const RunSpec& run,
                                       const std::vector<std::vector<std::vector<std::int64_t>>>& routing);

/// Dense FLOP/s that the data sheet of this GPU (its name as CUDA tells it) gives for products in the run's precision.
/// Empty where none does: a CPU, fp32, which runs on no tensor core here, a GPU without a sheet.
std::optional<double> peak_flops(const std::string& gpu, Precision precision);

/// Model FLOPs utilisation of a step: RunSpec::flops_per_token, recompute not counted, over what all ranks could do
/// at `peak_flops` each.
double model_flops_utilisation(const RunSpec& run, double step_s, double peak_flops);

}  // namespace wt
