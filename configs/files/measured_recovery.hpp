// What recoveries took, as a drill measured them: `windtunnel drill` writes such a file, studies name one in
// `recovery`, and the months of `drill --simulate` go by one. Presets lie in configs/faults/recovery.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "configs/files/failures.hpp"

namespace wt {

struct MeasuredRecovery {
  std::string title;                    ///< which drill, on what machine
  std::string run;                      ///< name of the run that was struck
  std::int64_t ranks = 0;               ///< of it
  double step_s = 0;                    ///< of the run without faults
  double blocking_s = 0;                ///< of a save
  double persist_s = 0;                 ///< of a save, in the background
  double first_step_s = 0;              ///< what the first step after a start takes beyond step_s
  RecoveryTimes times;                  ///< of processes that ended
  std::optional<double> hang_detect_s;  ///< until processes that stand still are noticed; none = no hang was measured
  std::optional<double> notice_s;       ///< from a notice to end until the run has saved and ended; none likewise
  std::optional<double> relaunch_s;     ///< until the ranks are connected of a run that is called again; none likewise
};

/// A preset of configs/faults/recovery or a file. Throws Error{usage} with file, line, found and allowed.
MeasuredRecovery read_measured_recovery(const std::string& name_or_file);
/// A file that reads back to the same.
std::string to_yaml(const MeasuredRecovery& measured);

}  // namespace wt
