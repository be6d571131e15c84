// How far off predicted steps of published runs were, each with everything left out that its origin published:
// configs/measurements/left_out_steps.csv, which `windtunnel validate runs --write-errors` writes. Intervals of
// predictions come from these.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

namespace wt {

struct StepError {
  std::string origin;  ///< Origins
  std::string family;  ///< step_family (sim/cost/stacks)
  double ratio = 1;    ///< measured over predicted
};

/// Throws Error{usage} as read_csv does, and at a ratio that is not above 0.
std::vector<StepError> read_step_errors(const std::filesystem::path& file);
void write_step_errors(const std::vector<StepError>& errors, const std::filesystem::path& file);

}  // namespace wt
