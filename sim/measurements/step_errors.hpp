// Predicted steps of published runs, each predicted without any data of its origin:
// configs/measurements/left_out_steps.csv, written by `windtunnel validate runs --write-errors`. Intervals of
// predictions come from their errors, and predictions name the runs that they are most like.
#pragma once
#include <filesystem>
#include <vector>

#include "sim/cost/stacks/measured_runs.hpp"

namespace wt {

/// Throws Error{usage} as read_csv does, and for a rate that is not above 0.
std::vector<MeasuredRun> read_step_errors(const std::filesystem::path& file);
void write_step_errors(const std::vector<MeasuredRun>& runs, const std::filesystem::path& file);

}  // namespace wt
