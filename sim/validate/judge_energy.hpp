// Compares published power and energy of training runs with what `windtunnel simulate` predicts for their run files.
#pragma once
#include <functional>
#include <vector>

#include "sim/fit/published_times.hpp"
#include "sim/measurements/energy_rows.hpp"
#include "sim/validate/judged.hpp"

namespace wt {

struct JudgedEnergy {
  std::vector<Judged> gpu_W;    ///< one for each row
  std::vector<Judged> token_J;  ///< one for each row that states it
};

/// Steps are predicted without anything that the row's origin published. Watts by state come from the GPU's data sheet
/// alone; no row has a part in them. Of a run with adapters, the step has the forward pass and the gradients of inputs,
/// and adapters that no tensor rank divides. The baseline: every GPU draws its thermal design power, and nothing else
/// draws any, for the predicted step.
JudgedEnergy judge_energy(const std::vector<EnergyRow>& rows, const PublishedTimes& published,
                          const std::function<void(std::size_t done, std::size_t all)>& progress = {});

}  // namespace wt
