// What a run has done, from the files of its folder (docs/train.md): steps as they were done last, steps that were lost
// and done again, starts, saves. For runs of 1e6 steps and more: a line's sample ids are skipped, a step takes 72
// bytes.
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
  std::string name, layout, device;  ///< empty: the folder does not say
  std::int64_t planned_steps = 0;    ///< 0: not known
  std::int64_t tokens_per_step = 0;  ///< 0: not known
  std::vector<StepLine> steps;       ///< in order, each once
  std::vector<StepLine> lost;        ///< done again since, in order of time
  std::vector<RunStart> starts;      ///< in order of time; the first is the run's own
  std::vector<SaveLine> saves;       ///< of steps that count
  std::vector<EvaluationLine> evaluations;
  std::vector<std::string> torn;         ///< lines that a rank was killed while it wrote, "generations.jsonl:3"
  std::optional<std::int64_t> diverged;  ///< a step whose gradients were no numbers, where the run ended
  bool ended = false;                    ///< it wrote its summary
};

/// A half-written last line is left out, and so is any line but those of metrics.jsonl that is no JSON: a later start
/// writes on behind a line that was torn, and what stands whole behind it is taken. Throws Error{usage} naming file and
/// line: no metrics.jsonl, a line of it that is no JSON, one of any file that lacks a key, steps that do not rise.
RunHistory read_run_history(const std::filesystem::path& folder);

/// Where the wall time from the first start to the last step went, seconds.
struct RunTimes {
  double wall_s = 0;
  double counted_s = 0;   ///< steps that count
  double lost_s = 0;      ///< steps that were done again
  double away_s = 0;      ///< between the last step before a start and the first after it
  double saving_s = 0;    ///< training stood still for saves that count
  double rest_s() const;  ///< the first start, pauses between steps, saves that were lost
  double goodput() const { return wall_s > 0 ? counted_s / wall_s : 0; }
};
RunTimes run_times(const RunHistory& run);

}  // namespace wt
