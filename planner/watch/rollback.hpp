// Going back once the loss is lost: from which checkpoint a run goes on, and which batches it leaves out from there on
// (PaLM, Chowdhery et al. 2022, section 5.1). The trainer goes back by itself to before what a run file says it skips
// (trainer/data/skipped_batches.hpp).
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "configs/files/resilience.hpp"
#include "planner/watch/rules.hpp"

namespace wt {

/// What a run has to go back to.
struct WayBack {
  std::vector<std::int64_t> checkpoints = {};  ///< steps of those in storage, newest first
  std::vector<BatchRange> skipped = {};        ///< batches that its run file leaves out
  std::string missing = {};                    ///< why nothing is known; "" = it is
};

/// Of an output folder: checkpoints with a manifest, and run.yaml, which the trainer writes.
WayBack read_way_back(const std::filesystem::path& run_folder);

/// Why a run may have no checkpoint to go back to, in a sentence; "" = it keeps old enough ones, or nobody knows.
std::string keeps_too_few(const std::filesystem::path& run_folder, const RollbackRule& rule);

struct Rollback {
  std::int64_t step = 0;      ///< that the run goes on after
  std::int64_t bad_step = 0;  ///< the first at which the loss was lost
  BatchRange skipped = {};    ///< from the first batch after `step` on
};

/// To the newest checkpoint that is older than the bad step by the margin, and older than `before`, where that is
/// given; none where none is kept.
std::optional<Rollback> roll_back(const WayBack& way, std::int64_t bad_step, const RollbackRule& rule,
                                  std::optional<std::int64_t> before);
/// Where there is none: why, in a sentence.
std::string why_no_way(const WayBack& way, std::int64_t bad_step, const RollbackRule& rule,
                       std::optional<std::int64_t> before);
/// "from step 800, 107 steps before step 907, leaving out batches 801-1000"
std::string to_string(const Rollback& rollback);

/// The batch that a step trains on, counted from 1, where ascending ranges of them are left out.
std::int64_t batch_of(std::int64_t step, const std::vector<BatchRange>& skipped);
/// Both together, ascending, no batch in two ranges.
std::vector<BatchRange> united(std::vector<BatchRange> ranges, const std::vector<BatchRange>& more);

/// Batches that are in both; each in ascending ranges.
std::vector<BatchRange> common(const std::vector<BatchRange>& ranges, const std::vector<BatchRange>& others);

/// Writes a run file that leaves these batches out, too, and goes on from what its folder holds. Throws Error for a
/// file that cannot be read or written.
void write_skipping(const std::filesystem::path& run_file, const std::vector<BatchRange>& skipped,
                    const std::filesystem::path& to);

}  // namespace wt
