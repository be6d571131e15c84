// What a running trainer shows of its health: the last lines of its metrics, device utilisation and network throughput.
// diagnose() tells a silent failure (everything looks busy, nothing is learnt) from slow hardware, from an imbalanced
// router and from missing input. One signal alone cannot: a hung collective shows 100 % utilisation.
#pragma once
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "configs/base/json_reader.hpp"
#include "trainer/run_folder/run_lines.hpp"
#include "trainer/run_folder/step_line.hpp"

namespace wt {

struct TrainingObservation {
  std::vector<TrainingStep> steps = {};       ///< in order
  std::optional<DivergedStep> diverged = {};  ///< of a run folder, where nothing was done since
  double now_unix_s = 0;                      ///< when it was looked at
  double last_sign_unix_s = 0;                ///< end of the last step; without steps, when the run began
  bool ended = false;                         ///< the run wrote its summary: no step is missing
  std::optional<double> utilisation = {};     ///< 0..1, median over the devices
  std::optional<double> network_Bps = {};     ///< received plus sent, all NICs together
};

/// metrics.jsonl of the folder as it is now: a half-written last line is left for later. Throws Error{usage} naming
/// file and line for a missing file, broken lines, missing keys and steps that do not rise.
TrainingObservation read_training(const std::filesystem::path& run_folder, double now_unix_s);

/// The same again and again, reading only what is new; all of it where the trainer has cut the file back.
class TrainingFollower {
 public:
  explicit TrainingFollower(const std::filesystem::path& run_folder);
  /// Throws as read_training.
  const TrainingObservation& look(double now_unix_s);

 private:
  void open_anew();

  std::filesystem::path folder_, file_;
  std::ifstream in_;                   ///< open, so that no other file gets its number
  std::uint64_t number_ = 0;           ///< of the file that is open
  std::int64_t read_ = 0, lines_ = 0;  ///< bytes and lines of it
  TrainingObservation seen_;
};

nlohmann::json to_json(const TrainingObservation& training);
TrainingObservation training_from_json(const JsonReader& reader);

enum class Ailment {
  fine,
  silent_failure,     ///< no step ends, or the loss is lost, and no process has died
  slow_hardware,      ///< devices or network; loads are even
  imbalanced_router,  ///< no hardware fault
  starved_input,      ///< devices idle, no more waiting for collectives than before
  undecided,          ///< slower, and the signals at hand do not say why
};
std::string to_string(Ailment ailment);  ///< "silent failure"

struct Diagnosis {
  Ailment ailment = Ailment::fine;
  std::string reason;  ///< one sentence with the numbers
  std::string action;
  /// Share of the signals that it needs which were known. A stall needs steps, utilisation and network; a slow run
  /// needs the router's balance as well; a lost loss and a run that is fine need the steps alone.
  double confidence = 1;
  double relative_pace = 1;        ///< of the last window, over the run's best window
  std::optional<double> mfu = {};  ///< of the last window; without `mfu` in the metrics the pace stands for it
};

struct DiagnosisOptions {
  double mfu_below = 0.8;         ///< the run is slow below this: MFU where lines have one, else relative pace
  std::size_t window = 8;         ///< steps in a median
  double stall_factor = 10;       ///< no step for so many typical steps is a stall ...
  double least_stall_s = 60;      ///< ... and for at least so long; ten times that before the first step
  double busy = 0.8, idle = 0.3;  ///< utilisation above, below
  double silent_Bps = 1e5;        ///< less is a network at rest: heartbeats and logs
  double imbalance_rise = 1.15;   ///< of the last window over the best window
  double loss_jump = 5;           ///< notes: ByteRobust takes a 5-fold loss for a fault
};

/// Needs `window` steps, else undecided; a stall is found with fewer. Pure.
Diagnosis diagnose(const TrainingObservation& training, const DiagnosisOptions& options = {});

}  // namespace wt
