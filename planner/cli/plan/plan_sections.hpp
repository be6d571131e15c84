// The sections of a plan's report in their order; plan_report() assembles them.
#pragma once
#include "planner/plan/plan_details.hpp"
#include "reports/model/report.hpp"

namespace wt {

/// "steps lost to failures"
const char* bucket_words(Bucket bucket);
/// What is signed: days, money, GPUs, MFU, memory margin, risk, confidence, the simple alternative, when the run is
/// done and what drives that.
Section first_page(const PlanInputs& inputs, const Plan& plan, const PlanDetails& details);
/// The chosen layout and its step.
Section layout_section(const PlanInputs& inputs, const Plan& plan);
/// The reasons of the choice: what was searched, and the fastest candidates.
Section search_section(const PlanInputs& inputs, const Plan& plan);
/// The choice under other times and loads, and what is worth measuring before.
Section robust_section(const PlanInputs& inputs, const Plan& plan);
/// The time of a step by cause, and two of its layers on a time axis.
Section step_section(const PlanInputs& inputs, const Plan& plan);
/// A rank's memory at its peak, against the limit.
Section memory_section(const PlanInputs& inputs, const Plan& plan);
/// The finish date, saves, and losses to failures.
Section goodput_section(const PlanInputs& inputs, const Plan& plan, const PlanDetails& details);
/// Recovery policies compared on the same traces, and what each save writes and keeps.
Section policies_section(const Plan& plan);
Section sensitivity_section(const PlanDetails& details);

}  // namespace wt
