// The files that grow while a run trains, as rank 0 writes them: metrics.jsonl, generations.jsonl, checkpoints.jsonl,
// evaluations.jsonl, diverged.json. Their lines: step_line.hpp, run_lines.hpp.
#pragma once
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "trainer/run_folder/run_lines.hpp"

namespace wt {

class RunWriter {
 public:
  /// Cuts lines of steps and what followed them back to `resumed_step`; lines of steps behind it go to replayed.jsonl.
  /// `last_line`: of metrics.jsonl, as another rank 0 had it that was lost before it could write it; empty: none.
  RunWriter(std::filesystem::path folder, std::int64_t resumed_step, const std::string& last_line);

  /// Of metrics.jsonl, as it is written. This and the next two throw Error{runtime} where the disk is full.
  void step(const std::string& line);
  void save(const SaveLine& line);
  void evaluation(const nlohmann::json& line);
  void start(const StartLine& line);
  /// The gradients of this step are no numbers. That this cannot be written is told on standard error: the step's own
  /// failure ends the run.
  void diverged(std::int64_t step);
  /// A step that diverged before and was done now is no longer told of.
  void done(std::int64_t step);
  /// Sets that were evaluated after `resumed_step`.
  std::size_t evaluated() const { return evaluated_; }

 private:
  std::int64_t cut_back(std::string_view name);
  void check(const std::ofstream& out, const char* name) const;

  std::filesystem::path folder_;
  std::int64_t resumed_step_;
  std::size_t evaluated_ = 0;
  std::ofstream metrics_, saves_, evaluations_;
  std::optional<DivergedStep> diverged_;  ///< in an earlier start, and not done since
};

}  // namespace wt
