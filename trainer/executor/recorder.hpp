// The files, besides checkpoints, that rank 0 writes to the output folder:
//   metrics.jsonl   one line per step: loss, tokens/s, step time, exposed communication, memory, samples;
//   expert_imbalance
//                   by the tokens of rank 0, and mfu if the device's peak is known (run_metrics.hpp)
//   replayed.jsonl  lines of steps before which a restart resumed: these steps are repeated
//   generations.jsonl  one line per start: times when ranks were connected and the state loaded, the step resumed from
//   diverged.json   the step with gradients that are not finite, and its number of consecutive attempts; until it
//   succeeds evaluations.jsonl  one line per set and evaluation: mean cross-entropy in nats a target, perplexity,
//   targets, samples checkpoints.jsonl  one line per save: time for which training was blocked, time until the
//   checkpoint was valid summary.json    medians over the measured steps, per rank trace.json      Chrome trace of the
//   median step, all ranks; timeline.json has the same as records routing.csv     rows per expert, by step, microbatch,
//   layer and rank (the last 64 steps) profile.json    op times for calibration, with the machine's fingerprint
#pragma once
#include <deque>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "configs/files/run.hpp"
#include "trainer/checkpoint/checkpoint.hpp"
#include "trainer/device/clocks.hpp"
#include "trainer/executor/executor.hpp"
#include "trainer/model/example_batch.hpp"
#include "trainer/run_folder/run_writer.hpp"

namespace wt {

class Recorder {
 public:
  /// Rank 0 truncates metrics.jsonl and checkpoints.jsonl to `resumed_step`, and removes summary.json if steps remain,
  /// because watchers take it for the end of the run. `peak_flops`: of each rank's device, for the MFU. `last_line`: of
  /// this process's previous recorder, or empty. It is written if the previous rank 0 was lost before writing it.
  Recorder(const RunSpec& run, std::filesystem::path folder, std::int64_t rank, std::int64_t resumed_step,
           std::optional<double> peak_flops, std::string last_line = {});
  /// Unix times, s. `loaded`: the checkpoint that the ranks resume from.
  void started(int generation, double connected_unix_s, double loaded_unix_s,
               const std::optional<LoadedCheckpoint>& loaded);
  /// `skipped`: batches skipped before this one, as in the line; empty: none. `examples`: for a step on finetuning
  /// data.
  void step(const StepResult& result, double learning_rate, const std::vector<std::int64_t>& samples,
            const nlohmann::json& skipped, const ExampleStep* examples = nullptr);
  /// Passes each further line of metrics.jsonl and evaluations.jsonl to `listener`, on rank 0: for trackers.
  void tell_lines_to(std::function<void(const nlohmann::json& line)> listener) { listener_ = std::move(listener); }
  /// This rank's last line of metrics.jsonl. Empty: no step was done.
  const std::string& last_line() const { return last_line_; }
  /// Records that the gradients of this step are not finite.
  void diverged(std::int64_t step);
  void checkpoint(std::int64_t step, const SaveTimes& times);
  void evaluation(const EvaluationLine& result);
  /// On rank 0: whether all sets were evaluated after the step that this start goes on from.
  bool evaluated() const { return (files_ ? files_->evaluated() : 0) >= run_.evaluation.sets.size(); }
  /// Of a copy in the memory of nodes.
  void local_copy(const SaveTimes& times) { local_copies_.push_back(times); }
  /// Collective: gathers the other ranks' measurements and writes the files.
  void finish(const Executor& executor, Communicators& communicators);

 private:
  void write_routing(Communicators& communicators);
  void write_timelines(Communicators& communicators, const StepTimeline& own);

  const RunSpec& run_;
  std::filesystem::path folder_;
  std::int64_t rank_;
  std::int64_t resumed_step_;
  std::optional<double> peak_flops_;
  std::string last_line_;
  std::optional<RunWriter> files_;  ///< on rank 0
  std::int64_t steps_ = 0;          ///< of this process
  std::deque<StepTimeline>
      timelines_;  ///< the last kKeptTimelines after the warm-up (of the warm-up until there are others)
  std::vector<SaveTimes> checkpoints_, local_copies_;
  nlohmann::json loaded_;                                   ///< null: no checkpoint was loaded
  Clocks measured_from_;                                    ///< end of the warm-up
  double machine_from_s_ = 0;                               ///< machine_cpu_s() at that time
  std::function<void(const nlohmann::json&)> listener_;     ///< empty: none
  std::deque<std::pair<std::int64_t, StepResult>> routed_;  ///< routing of the last steps
};

/// Steps at the start of a process that medians leave out: first-touch memory, connections, caches.
inline constexpr std::int64_t kWarmUpSteps = 3;
/// Number of last steps for medians and the typical step, which bounds the memory of a long run.
inline constexpr std::size_t kKeptTimelines = 256;

}  // namespace wt
