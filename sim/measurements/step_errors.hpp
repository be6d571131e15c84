// Errors of predicted steps of published runs, each predicted without any data of its origin:
// configs/measurements/left_out_steps.csv, written by `windtunnel validate runs --write-errors`. Intervals of
// predictions come from these.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

namespace wt {

struct StepError {
  std::string origin;  ///< as in Origins
  std::string family;  ///< step_family (sim/cost/stacks)
  double ratio = 1;    ///< measured over predicted
};

/// Throws Error{usage} as read_csv does, and for a ratio that is not above 0.
std::vector<StepError> read_step_errors(const std::filesystem::path& file);
void write_step_errors(const std::vector<StepError>& errors, const std::filesystem::path& file);

}  // namespace wt
