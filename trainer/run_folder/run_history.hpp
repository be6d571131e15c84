// The history of a run, from the files of its folder (docs/train.md): steps in their last version, steps lost and
// repeated, starts, saves. Made for runs of 1e6 steps and more: sample ids are skipped, and a step takes 72 bytes.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "trainer/run_folder/recovery_times.hpp"
#include "trainer/run_folder/run_lines.hpp"
#include "trainer/run_folder/step_line.hpp"

namespace wt {

/// A start, with what happened before it.
struct RunStart : StartLine {
  std::int64_t reached = 0;                ///< the last step that was done before
  std::int64_t lost = 0;                   ///< steps that were done before and had to be done again
  std::optional<double> away_s = {};       ///< from the end of the last step before to the begin of the first one after
  std::optional<DrillRestart> agent = {};  ///< what the agent knows of it
};

struct RunHistory {
  std::string name, layout, device;  ///< "" = not in the folder
  std::int64_t planned_steps = 0;    ///< 0 = unknown
  std::int64_t tokens_per_step = 0;  ///< 0 = unknown
  std::vector<StepLine> steps;       ///< in order, each once
  std::vector<StepLine> lost;        ///< steps that were repeated, in time order
  std::vector<RunStart> starts;      ///< in time order; the first is the run's begin
  std::vector<SaveLine> saves;       ///< of steps that count
  std::vector<EvaluationLine> evaluations;
  std::vector<std::string> torn;         ///< incomplete lines of killed ranks, "generations.jsonl:3"
  std::optional<std::int64_t> diverged;  ///< the step whose gradients were not finite, where the run ended
  bool ended = false;                    ///< the summary was written
};

/// Ignores an incomplete last line. In files other than metrics.jsonl, also ignores incomplete lines elsewhere: a later
/// start may append a complete line to one, which is read. Throws Error{usage} naming file and line: no metrics.jsonl,
/// invalid JSON in it, a missing key in any file, steps that do not increase.
RunHistory read_run_history(const std::filesystem::path& folder);

/// Wall time from the first start to the last step by use, in seconds.
struct RunTimes {
  double wall_s = 0;
  double counted_s = 0;   ///< steps that count
  double lost_s = 0;      ///< steps that were repeated
  double away_s = 0;      ///< from the last step before each later start to the first step after it
  double saving_s = 0;    ///< blocking time of saves that count
  double rest_s() const;  ///< first start, pauses between steps, saves that were lost
  double goodput() const { return wall_s > 0 ? counted_s / wall_s : 0; }
};
RunTimes run_times(const RunHistory& run);

}  // namespace wt
