// Recovery times that a drill measured. `windtunnel drill` writes such a file; the key `recovery` of a study and `drill
// --simulate` read one. Presets are in configs/faults/recovery.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "configs/files/failures.hpp"

namespace wt {

struct MeasuredRecovery {
  std::string title;                    ///< which drill, on which machine
  std::string run;                      ///< name of the drilled run
  std::int64_t ranks = 0;               ///< of that run
  double step_s = 0;                    ///< without faults
  double blocking_s = 0;                ///< time for which a save blocks training
  double persist_s = 0;                 ///< time of a save's background part
  double first_step_s = 0;              ///< time of the first step after a start beyond step_s
  RecoveryTimes times;                  ///< after processes ended
  std::optional<double> hang_detect_s;  ///< until hanging processes are detected; none = not measured
  std::optional<double> notice_s;    ///< from a termination notice until the run has saved and ended; none = likewise
  std::optional<double> relaunch_s;  ///< from a new call of the trainer until its ranks are connected; none = likewise
};

/// A preset of configs/faults/recovery or a file. Throws Error{usage} with file, line, found and allowed.
MeasuredRecovery read_measured_recovery(const std::string& name_or_file);
/// Writes a file for read_measured_recovery.
std::string to_yaml(const MeasuredRecovery& measured);

}  // namespace wt
