// What a run leaves behind besides checkpoints, written by rank 0 into the output folder:
//   metrics.jsonl   one line a step: loss, tokens/s, step time, exposed communication, memory, samples;
//   expert_imbalance by
//                   the tokens of rank 0, and mfu where the device's peak is known (run_metrics.hpp)
//   replayed.jsonl  the lines of steps that a restart went back behind: they are done again
//   generations.jsonl  one line a start: when the ranks were connected and the state was loaded, the step it was of
//   diverged.json   the step whose gradients were no numbers, and how many times in a row; until it is done
//   evaluations.jsonl  one line a set and evaluation: mean cross-entropy in nats a target, perplexity, targets, samples
//   checkpoints.jsonl  one line a save: how long training stood still, how long until the checkpoint was valid
//   summary.json    medians over the measured steps, per rank
//   trace.json      Chrome trace of the median step, all ranks; timeline.json the same as records
//   routing.csv     rows per expert, by step, microbatch, layer and rank (the last 64 steps)
//   profile.json    op times for calibration, with the machine's fingerprint
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
  /// Rank 0 cuts metrics.jsonl and checkpoints.jsonl back to `resumed_step`, and removes summary.json where steps are
  /// left to do: who watches the run takes it for the end. `peak_flops`: of each rank's device, for the MFU.
  /// `last_line`: of this process's recorder before, empty: none. It is written where the rank 0 of then was lost
  /// before it could.
  Recorder(const RunSpec& run, std::filesystem::path folder, std::int64_t rank, std::int64_t resumed_step,
           std::optional<double> peak_flops, std::string last_line = {});
  /// Unix times, s. `loaded`: what the ranks go on from.
  void started(int generation, double connected_unix_s, double loaded_unix_s,
               const std::optional<LoadedCheckpoint>& loaded);
  /// `skipped`: batches that were left out before this one, as the line has them; empty: none. `examples`: of a step on
  /// finetuning data.
  void step(const StepResult& result, double learning_rate, const std::vector<std::int64_t>& samples,
            const nlohmann::json& skipped, const ExampleStep* examples = nullptr);
  /// Each line of metrics.jsonl and evaluations.jsonl from now on, on rank 0: for trackers.
  void tell_lines_to(std::function<void(const nlohmann::json& line)> listener) { listener_ = std::move(listener); }
  /// Of metrics.jsonl, as this rank has it. Empty: no step was done.
  const std::string& last_line() const { return last_line_; }
  /// The gradients of this step are no numbers.
  void diverged(std::int64_t step);
  void checkpoint(std::int64_t step, const SaveTimes& times);
  void evaluation(const EvaluationLine& result);
  /// On rank 0: whether all sets were evaluated after the step that this start goes on from.
  bool evaluated() const { return (files_ ? files_->evaluated() : 0) >= run_.evaluation.sets.size(); }
  /// Of a copy in the memory of nodes.
  void local_copy(const SaveTimes& times) { local_copies_.push_back(times); }
  /// Collective: gathers what the other ranks measured and writes the files of the run.
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
      timelines_;  ///< the last kKeptTimelines after the warm-up (of the warm-up while there are no others)
  std::vector<SaveTimes> checkpoints_, local_copies_;
  nlohmann::json loaded_;                                   ///< null: nothing was
  Clocks measured_from_;                                    ///< end of the warm-up
  double machine_from_s_ = 0;                               ///< machine_cpu_s() then
  std::function<void(const nlohmann::json&)> listener_;     ///< empty: none
  std::deque<std::pair<std::int64_t, StepResult>> routed_;  ///< routing of the last steps
};

/// Steps at the start of a process that are left out of medians: first-touch memory, connections, caches.
inline constexpr std::int64_t kWarmUpSteps = 3;
/// Medians and the typical step come from so many of the last steps; a long run must not grow in memory.
inline constexpr std::size_t kKeptTimelines = 256;

}  // namespace wt
