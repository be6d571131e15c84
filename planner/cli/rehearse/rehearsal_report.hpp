// The report of `windtunnel train --rehearse`: what ran instead of the plan, op times and peak memory with every
// column's source, and why a column is not compared.
#pragma once
#include "planner/experiments/rehearsal_comparison.hpp"
#include "reports/model/report.hpp"

namespace wt {

/// "at 1/32 of the plan's width (d_model 192 of 6144), 4 of 40 layers, 512 of 4096 tokens a sequence"; "" without
/// reduction.
std::string reduction(const RunSpec& plan, const RunSpec& run);
Report rehearsal_report(const Rehearsal& rehearsal);

}  // namespace wt
