// How far off predicted steps of published runs were, each with everything left out that its origin published:
// configs/measurements/left_out_steps.csv, which `windtunnel validate runs --write-errors` writes. Intervals of
// predictions come from these.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "configs/files/layout.hpp"
#include "configs/files/model.hpp"

namespace wt {

struct StepError {
  std::string origin;  ///< Origins
  std::string family;  ///< step_family
  double ratio = 1;    ///< measured over predicted
};

/// Runs whose predictions err alike: "MoE, data parallel", "dense, tensor and pipeline".
std::string step_family(const ModelSpec& model, const Layout& layout);

/// Throws Error{usage} as read_csv does, and at a ratio that is not above 0.
std::vector<StepError> read_step_errors(const std::filesystem::path& file);
void write_step_errors(const std::vector<StepError>& errors, const std::filesystem::path& file);

}  // namespace wt
