// Rollback after the loss diverged: the checkpoint that a run continues from, and the batches it skips from there on
// (PaLM, Chowdhery et al. 2022, section 5.1). The trainer itself goes back to before the skipped batches of its run
// file (trainer/data/skipped_batches.hpp).
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "configs/files/resilience.hpp"
#include "planner/watch/rules.hpp"

namespace wt {

/// What a rollback is chosen from.
struct RollbackTargets {
  std::vector<std::int64_t> checkpoints = {};  ///< steps of the checkpoints in storage, newest first
  std::vector<BatchRange> skipped = {};        ///< batches that the run file skips already
  std::string missing = {};                    ///< why nothing is known; "" = known
};

/// Reads an output folder: checkpoints with a manifest, and run.yaml, which the trainer writes.
RollbackTargets read_rollback_targets(const std::filesystem::path& run_folder);

/// A sentence why a rollback may find no checkpoint; "" = old enough ones are kept, or unknown.
std::string too_few_checkpoints(const std::filesystem::path& run_folder, const RollbackRule& rule);

struct Rollback {
  std::int64_t step = 0;      ///< the checkpoint's step
  std::int64_t bad_step = 0;  ///< the first step with a bad loss
  BatchRange skipped = {};    ///< starts with the first batch after `step`
};

/// The newest checkpoint that is older than the bad step by the margin, and older than `before` if that is set. Empty
/// if there is none.
std::optional<Rollback> choose_rollback(const RollbackTargets& targets, std::int64_t bad_step, const RollbackRule& rule,
                                        std::optional<std::int64_t> before);
/// A sentence why choose_rollback() found none.
std::string why_no_rollback(const RollbackTargets& targets, std::int64_t bad_step, const RollbackRule& rule,
                            std::optional<std::int64_t> before);
/// "from step 800, 107 steps before step 907, leaving out batches 801-1000"
std::string to_string(const Rollback& rollback);

/// The batch of a step, counted from 1, if these ascending ranges are skipped.
std::int64_t batch_of(std::int64_t step, const std::vector<BatchRange>& skipped);
/// The union, ascending, in disjoint ranges.
std::vector<BatchRange> united(std::vector<BatchRange> ranges, const std::vector<BatchRange>& more);

/// The intersection of ascending ranges.
std::vector<BatchRange> common(const std::vector<BatchRange>& ranges, const std::vector<BatchRange>& others);

/// Writes a copy of a run file that skips these batches, too, and resumes from its folder. Throws Error for a file that
/// cannot be read or written.
void write_skipping(const std::filesystem::path& run_file, const std::vector<BatchRange>& skipped,
                    const std::filesystem::path& to);

}  // namespace wt
