// The report of `windtunnel calibrate`: how well a machine model predicts the measurements that it was fitted to.
#pragma once
#include "reports/model/report.hpp"
#include "sim/cost/calibrate/calibrate.hpp"

namespace wt {

/// Residuals by class, and the calibration's notes.
Report calibrate_report(const CalibrationResult& result);

}  // namespace wt
