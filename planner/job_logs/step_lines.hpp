// Lines that trainers print for their steps.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "planner/job_logs/job_log.hpp"

namespace wt {

/// Without terminal colours and the prefixes of torchrun, srun, Open MPI and kubectl.
std::string bare_line(const std::string& line);
/// A line of several steps that were written without a line end between them, cut before each.
std::vector<std::string> steps_of_line(const std::string& bare);

/// Reads the lines of one log in order. A step may span several: Composer's blocks, Megatron-Bridge's pairs.
class StepLines {
 public:
  /// `where` is for errors. A step that is complete with this line. Throws Error{usage} for a number in another
  /// notation, and for a line of another trainer than the lines before.
  std::optional<LoggedStep> read(const std::string& bare, const std::string& where);
  /// What the end of the log completes: Composer's last block, unless the log was `cut` in it; where no trainer was
  /// found, the steps of Hugging Face's Trainer: by its seconds since the start, or windows of its progress bar.
  std::vector<LoggedStep> end(bool cut);

  std::optional<JobTrainer> trainer() const { return trainer_; }
  std::optional<double> peak_flops() const { return peak_flops_; }
  bool counts_tokens() const { return counts_tokens_; }
  /// Whether the line says that the job starts, or starts again.
  static bool starts(const std::string& bare);
  /// Whether a line that read() took for none has the words of a step: it is cut, or of an unknown release.
  static bool looks_like_step(const std::string& bare);

 private:
  std::optional<LoggedStep> torchtitan(const std::string& line, const std::string& where);
  std::optional<LoggedStep> megatron(const std::string& line, const std::string& where);
  std::optional<LoggedStep> nemo(const std::string& line, const std::string& where);
  std::optional<LoggedStep> automodel(const std::string& line, const std::string& where);
  std::optional<LoggedStep> composer(const std::string& line, const std::string& where);
  void progress_bar(const std::string& line, const std::string& where);
  /// A line of Hugging Face's Trainer with seconds since the start, which it has where it counts tokens.
  void clocked_line(const std::string& line, const std::string& where);
  void of(JobTrainer trainer, const std::string& where);

  std::optional<JobTrainer> trainer_;
  std::optional<double> peak_flops_;
  std::optional<double> flops_of_next_;     ///< Megatron-Bridge prints them a line before the step
  std::optional<LoggedStep> block_;         ///< of Composer, not complete yet
  std::optional<LoggedStep> clocked_next_;  ///< its step comes with the next bar
  std::vector<LoggedStep> clocked_;
  double evaluated_s_ = 0;
  bool had_lm_loss_ = false, counts_tokens_ = false, losses_of_trainer_ = false;
  struct Progress {
    std::int64_t step = 0;
    double elapsed_s = 0;
  };
  std::map<std::int64_t, std::vector<Progress>> bars_;  ///< by the number of all steps: other bars have other numbers
};

/// "6,400", "1.5e14": finite, digits with commas between thousands. Throws Error{usage} with `where` and `name`, and
/// nothing of a text that is no number.
double number_of_log(const std::string& text, const std::string& where, const std::string& name);
/// The same, where a trainer may print nan or inf; then NaN.
double number_or_nan_of_log(const std::string& text, const std::string& where, const std::string& name);
/// A step's number. Throws Error{usage} beyond 15 digits.
std::int64_t step_of_log(const std::string& digits, const std::string& where);

}  // namespace wt
