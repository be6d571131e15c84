// The report of `windtunnel import` on nccl-tests: bandwidth by size, and whether it is usual for the fabric.
#pragma once
#include "bench/formats/nccl_tests.hpp"
#include "planner/cli/import/usual_collective.hpp"
#include "reports/model/report.hpp"

namespace wt {

/// `usual`: null where nothing is known of the GPU. `nodes`: NVLink domains.
Report nccl_tests_report(const NcclTests& tests, const UsualCollectives* usual, std::int64_t nodes);

}  // namespace wt
