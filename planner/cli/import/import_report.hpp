// Reports of `windtunnel import`: what another tool's file contained, and what it lacks.
#pragma once
#include "bench/formats/kineto.hpp"
#include "bench/formats/nvbench.hpp"
#include "configs/files/profile.hpp"
#include "reports/model/report.hpp"

namespace wt {

/// One row per size. `profile` comes from from_nccl_tests and is not empty.
Report nccl_tests_report(const Profile& profile);
/// Time by class of kernels, and the unclassified kernels, the longest first.
Report kineto_report(const KinetoTrace& trace);
/// One row per benchmark, and the skipped ones.
Report nvbench_report(const NvbenchResult& result);

}  // namespace wt
