// What a training job wrote about its own steps, in the words of its trainer: torchtitan, Megatron-LM and
// Megatron-Bridge, NeMo Automodel, Composer (LLM Foundry), Hugging Face's Trainer and TRL, and ours.
//
// A log is foreign text. Nothing of it is kept but numbers of steps. What cannot be told from it is an error or a note,
// never a guess.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace wt {

enum class JobTrainer { torchtitan, megatron, automodel, composer, hugging_face, windtunnel };
/// "torchtitan", "Megatron", "NeMo Automodel", "Composer", "Hugging Face", "windtunnel".
std::string to_string(JobTrainer trainer);

/// One optimizer step, or the window of steps that one line stands for. Empty: the line does not say it.
struct LoggedStep {
  std::int64_t step = 0;
  std::optional<double> step_s = {};
  std::optional<double> tokens_per_s_per_gpu = {};  ///< where the trainer prints a rate in place of a time
  std::optional<double> tokens_per_s = {};          ///< of all GPUs
  std::optional<double> loss = {};                  ///< NaN where the log says so
  std::optional<double> grad_norm = {};             ///< likewise
  std::optional<double> memory_bytes = {};          ///< peak of one GPU, JobLog::memory_is_reserved says of what
  std::optional<double> flops_per_gpu = {};         ///< FLOP/s that the trainer counts, by its own formula
  std::optional<double> mfu = {};                   ///< as a share, by the trainer's own formula
  std::optional<std::int64_t> global_batch = {};    ///< sequences
  std::optional<double> tokens = {};                ///< of all GPUs since the first step, as the trainer counts them
  std::optional<double> clock_s = {};               ///< when it was written, by a clock of any zone and any beginning
  std::int64_t place = 0;                           ///< in the log; what was written later has a larger one

  bool timed() const { return step_s || tokens_per_s_per_gpu || tokens_per_s; }
};

struct JobLog {
  JobTrainer trainer = JobTrainer::windtunnel;
  std::vector<LoggedStep> steps;     ///< ascending; of a step that was done again, the last copy
  std::vector<std::int64_t> starts;  ///< first logged steps after a start of the job, ascending
  bool memory_is_reserved = false;   ///< else allocated
  std::optional<double> peak_flops;  ///< of a GPU, which the trainer's MFU divides by
  std::int64_t places = 0;           ///< that have been read
  bool ended = false;                ///< the last that it says is that the job has ended
  bool ends_in_record = false;       ///< the last record of a file that is not text is cut, as while it is written
  std::vector<std::string> notes;    ///< what is unusual in it, in sentences
};

/// What read_job_log reads. `lines`: standard output, or metrics as JSON lines. The others are only read as a whole.
enum class LogFormat { lines, table, event_file, wandb_run, trainer_state };
/// "lines", "a CSV export", "an event file of TensorBoard", "a run of Weights & Biases", "a trainer_state.json".
std::string to_string(LogFormat format);
/// By the file's name and how it begins; `lines` for what cannot be read.
LogFormat log_format(const std::filesystem::path& file);

/// Reads standard output, a JSON-lines file of metrics, an event file of TensorBoard or a folder of them, a CSV export
/// or a run-*.wandb of Weights & Biases, or Hugging Face's trainer_state.json. Throws Error{usage} for a file without
/// steps of a known trainer, numbers in another notation than the trainer's, damage, more than 1 GiB of a file that is
/// not text, and lines of two runs.
JobLog read_job_log(const std::filesystem::path& file);

/// The same of a log that is still written to: no steps are no error, and that it ends within a record is no note.
JobLog read_growing_log(const std::filesystem::path& file);

/// Whether a folder has event files of TensorBoard in it.
bool is_event_folder(const std::filesystem::path& folder);
/// The log, or the event files of a folder, in their order.
std::vector<std::filesystem::path> files_of_log(const std::filesystem::path& log);

}  // namespace wt
