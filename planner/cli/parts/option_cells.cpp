#include "planner/cli/parts/option_cells.hpp"

#include "configs/base/number.hpp"
#include "planner/plan/other_gpus.hpp"
#include "planner/search/search.hpp"

namespace wt {

Cell batch_cell(const StudySpec& study) {
  const auto batch = as_double(study.global_batch);
  if (divides_batch(study)) return {batch, format_number(batch)};
  return {batch, fmt::format("{}, not among {}", format_number(batch), study.gpus), {}, Status::warn};
}

Cell no_plan_cell(const std::string& misfit, Code failure) {
  if (failure != Code::finding) return {"cannot be planned", Status::bad};
  return {misfit.starts_with(kNoLayoutDivides) ? "does not divide" : "does not fit", Status::bad};
}

}  // namespace wt
