// Health of a running training job, from the last lines of its metrics, device utilisation and network throughput.
// diagnose() distinguishes silent failures (busy devices, no progress), slow hardware, an imbalanced router and missing
// input. One signal is not enough: a hung collective shows 100 % utilisation.
#pragma once
#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "configs/base/growing_file.hpp"
#include "configs/base/json_reader.hpp"
#include "trainer/run_folder/run_lines.hpp"
#include "trainer/run_folder/step_line.hpp"

namespace wt {

struct TrainingObservation {
  std::vector<TrainingStep> steps = {};       ///< in order
  std::optional<DivergedStep> diverged = {};  ///< set if it is the latest event in the run folder
  double now_unix_s = 0;                      ///< time of the observation
  double last_sign_unix_s = 0;                ///< end of the last step; without steps, begin of the run
  bool ended = false;                         ///< the run wrote its summary: no further step is expected
  std::optional<double> utilisation = {};     ///< 0..1, median over the devices
  std::optional<double> network_Bps = {};     ///< received plus sent, over all NICs
};

/// Reads metrics.jsonl of the folder, without an incomplete last line. Throws Error{usage} with file and line: a
/// missing file, broken lines, missing keys, steps that do not ascend.
TrainingObservation read_training(const std::filesystem::path& run_folder, double now_unix_s);

/// Follows a growing file and reads only new lines; starts over where the trainer has truncated it.
class TrainingFollower {
 public:
  explicit TrainingFollower(const std::filesystem::path& run_folder);
  /// Throws as read_training.
  const TrainingObservation& look(double now_unix_s);

 private:
  std::filesystem::path folder_, file_;
  GrowingFile lines_;
  std::int64_t line_ = 0;  ///< number of the last one read
  TrainingObservation seen_;
};

nlohmann::json to_json(const TrainingObservation& training);
TrainingObservation training_from_json(const JsonReader& reader);

enum class Ailment {
  fine,
  silent_failure,     ///< no step ends, or the loss is lost, although no process has died
  slow_hardware,      ///< devices or network, with balanced loads
  imbalanced_router,  ///< no hardware fault
  starved_input,      ///< devices are idle, and wait no more for collectives than before
  undecided,          ///< slower, but the available signals do not explain it
};
std::string to_string(Ailment ailment);  ///< "silent failure"

struct Diagnosis {
  Ailment ailment = Ailment::fine;
  std::string reason;  ///< one sentence with the numbers
  std::string action;
  /// Share of the needed signals that were available. A stall needs steps, utilisation and network; a slow run needs
  /// the router's balance in addition; a lost loss and a healthy run need only the steps.
  double confidence = 1;
  double relative_pace = 1;        ///< of the last window, over the run's best window
  std::optional<double> mfu = {};  ///< of the last window; metrics without `mfu`: pace is used instead
};

struct DiagnosisOptions {
  double mfu_below = 0.8;         ///< the run is slow below this: MFU if recorded, otherwise relative pace
  std::size_t window = 8;         ///< steps in a median
  double stall_factor = 10;       ///< a stall lasts at least this many typical steps
  double least_stall_s = 60;      ///< and at least this long; ten times as long before the first step
  double busy = 0.8, idle = 0.3;  ///< limits of utilisation
  double silent_Bps = 1e5;        ///< below this a network is idle except for heartbeats and logs
  double imbalance_rise = 1.15;   ///< of the last window over the best window
  double loss_rise = 0.3;         ///< [nats] of medians that is a fault, as in configs/watch/default.yaml
  double loss_deviations = 8;     ///< and at least as many robust standard deviations of one step
};

/// Needs `window` steps, otherwise undecided; a stall is found with fewer. Pure.
Diagnosis diagnose(const TrainingObservation& training, const DiagnosisOptions& options = {});

}  // namespace wt
