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
  /// `where` is for errors, `place` counts from 1. A step that is complete with this line; Composer's has the place of
  /// its own last line. Throws Error{usage} for a number in another
  /// notation, and for a line of another trainer than the lines before.
  std::optional<LoggedStep> read(const std::string& bare, const std::string& where, std::int64_t place);
  /// What the end of the log completes: Composer's last block, unless the log was `cut` in it; where no trainer was
  /// found, the steps of Hugging Face's Trainer: with `losses` one for each loss that it printed, else those with
  /// seconds since the start, or windows of its progress bar.
  std::vector<LoggedStep> end(bool cut, bool losses);

  std::optional<JobTrainer> trainer() const { return trainer_; }
  std::optional<double> peak_flops() const { return peak_flops_; }
  bool counts_tokens() const { return counts_tokens_; }
  /// Whether Hugging Face's Trainer printed losses.
  bool has_losses() const { return !losses_.empty(); }
  /// Whether Hugging Face's Trainer printed a loss at this place, or its training's bar moved there.
  bool goes_on(std::int64_t place) const { return last_sign_ == place; }
  /// Of end(): no progress bar says at which steps the losses were printed.
  bool counts_losses() const { return counts_losses_; }
  /// Whether the line says that the job starts, or starts again.
  static bool starts(const std::string& bare);
  /// Whether it says that the job has ended.
  static bool ends(const std::string& bare);
  /// Whether a line that read() took for none has the words of a step: it is cut, or of an unknown release.
  static bool looks_like_step(const std::string& bare);

 private:
  std::optional<LoggedStep> torchtitan(const std::string& line, const std::string& where);
  std::optional<LoggedStep> megatron(const std::string& line, const std::string& where);
  std::optional<LoggedStep> nemo(const std::string& line, const std::string& where);
  std::optional<LoggedStep> automodel(const std::string& line, const std::string& where);
  std::optional<LoggedStep> composer(const std::string& line, const std::string& where, std::int64_t place);
  void hugging_face(const std::string& line, const std::string& where, std::int64_t place);
  /// The dict that Hugging Face's Trainer prints: a loss, or an evaluation.
  void printed_dict(const std::string& line, const std::string& where, std::int64_t place);
  struct Progress;
  const std::vector<Progress>* training_bar() const;
  static std::vector<LoggedStep> half_minutes(const std::vector<Progress>& bar);
  static std::vector<std::optional<double>> paces(const std::vector<Progress>& bar);
  std::vector<LoggedStep> losses(const std::vector<Progress>* bar);
  void of(JobTrainer trainer, const std::string& where);

  std::optional<JobTrainer> trainer_;
  std::optional<double> peak_flops_;
  std::optional<double> flops_of_next_;  ///< Megatron-Bridge prints them a line before the step
  std::optional<LoggedStep> block_;      ///< of Composer, not complete yet
  double evaluated_s_ = 0;               ///< so far, by Hugging Face's Trainer
  bool had_lm_loss_ = false, counts_tokens_ = false, counts_losses_ = false;
  struct Progress {
    std::int64_t step = 0;
    double elapsed_s = 0;
    std::int64_t place = 0;
  };
  std::vector<LoggedStep> losses_;                      ///< of Hugging Face's Trainer, whose steps are not known yet
  std::map<std::int64_t, std::vector<Progress>> bars_;  ///< by the number of all steps: other bars have other numbers
  std::int64_t training_ = 0;                           ///< of `bars_`: ran longest
  double longest_s_ = -1;
  std::int64_t last_sign_ = 0;  ///< place of a loss, or where the training's bar moved
};

/// "6,400", "1.5e14": finite, digits with commas between thousands. Throws Error{usage} with `where` and `name`, and
/// nothing of a text that is no number.
double number_of_log(const std::string& text, const std::string& where, const std::string& name);
/// The same, where a trainer may print nan or inf; then NaN.
double number_or_nan_of_log(const std::string& text, const std::string& where, const std::string& name);
/// A step's number. Throws Error{usage} beyond 15 digits.
std::int64_t step_of_log(const std::string& digits, const std::string& where);

}  // namespace wt
