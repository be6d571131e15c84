// What `windtunnel calibrate` says: how well a machine model predicts the measurements that it was made of.
#pragma once
#include "reports/model/report.hpp"
#include "sim/cost/calibrate/calibrate.hpp"

namespace wt {

/// Residuals class by class, and the calibration's notes.
Report calibrate_report(const CalibrationResult& result);

}  // namespace wt
