// What tables say of an option: its batch, and why it has no plan.
#pragma once
#include <string>

#include "configs/base/error.hpp"
#include "configs/files/study.hpp"
#include "reports/model/report.hpp"

namespace wt {

/// Sequences; flagged if they do not divide among the GPUs.
Cell batch_cell(const StudySpec& study);

/// "does not divide", "does not fit", or "cannot be planned" for any other failure. `misfit`: the text of the failure.
Cell no_plan_cell(const std::string& misfit, Code failure = Code::finding);

}  // namespace wt
