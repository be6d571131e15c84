// What `windtunnel import` says of what another tool measured: what was there, and what of it is not known.
#pragma once
#include "bench/formats/kineto.hpp"
#include "bench/formats/nvbench.hpp"
#include "configs/files/profile.hpp"
#include "reports/model/report.hpp"

namespace wt {

/// A row a size. `profile`: of from_nccl_tests, not empty.
Report nccl_tests_report(const Profile& profile);
/// Time by class of kernels, and the kernels of unknown kind, the longest first.
Report kineto_report(const KinetoTrace& trace);
/// A row a benchmark, and what was skipped.
Report nvbench_report(const NvbenchResult& result);

}  // namespace wt
