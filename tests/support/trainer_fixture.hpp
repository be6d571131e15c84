// Runs the real trainer for end-to-end tests: small runs on real text, started as a person starts them, and everything
// that they leave behind, read back.
#pragma once
#include <sys/types.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "configs/spec/run.hpp"
#include "sim/program/timeline.hpp"
#include "tests/support/ended.hpp"

namespace wt::test {

/// A folder of this test program, gone when it ends.
std::filesystem::path scratch(const std::string& name);
/// The licence of this tree as byte tokens, seq + 1 a sample; packed at the first call. Others may read the same
/// folder.
std::filesystem::path licence_tokens(std::int64_t seq);

/// 1x1, fp32, 20 steps of 24 sequences: more than one epoch. Three layers, so that a weight slot is used twice in one
/// pass. Writes no checkpoints.
RunSpec small_run();
/// Ten steps of it and a checkpoint of the last: what layouts are compared by. One training serves every comparison.
RunSpec short_run();
RunSpec with_layout(RunSpec run, std::int64_t replicate, std::int64_t shard, std::int64_t expert,
                    Recompute recompute = Recompute::none);
/// Every way to arrange four ranks, and 1x3: three shards of the embedding are padded.
std::vector<RunSpec> sharded_runs(const RunSpec& run);

/// Recompute of whole blocks: alone, sharded, with experts on other ranks of the shard group, and on all of them.
std::vector<RunSpec> block_runs(const RunSpec& run);

/// Layouts that keep weights, gradients or optimizer state elsewhere or longer than plain HSDP does, on four ranks.
std::vector<RunSpec> further_layouts(const RunSpec& run);

/// Layouts of four ranks, and one rank, whose microbatch leaves a smaller last one.
std::vector<RunSpec> uneven_runs(const RunSpec& run);

/// Sequences shared by 2 and by 4 ranks, with and without experts elsewhere.
std::vector<RunSpec> context_runs(const RunSpec& run);
/// Placements with experts in several slots: on other ranks, twice on one, different in every layer.
std::vector<RunSpec> replicated_experts(const RunSpec& run);

/// Every third of them, from the first; at night all. For what other tests see in every layout, of another model or
/// through other calls.
std::vector<RunSpec> some_of(const std::vector<RunSpec>& runs);

struct Launch {
  std::vector<std::string> more;                   ///< arguments after `train RUN -o FOLDER`
  std::map<std::string, std::string> environment;  ///< on top of this process's, without a launcher's variables
  std::int64_t file_limit_bytes = 0;               ///< RLIMIT_FSIZE, 0 = none
};
struct Started {
  pid_t pid = -1;
  std::filesystem::path log;
};

/// A scenario file with these events, in flow style, for train --faults.
std::filesystem::path fault_file(const std::string& name, const std::vector<std::string>& events);
/// An event: a rank is killed at a place ("step: 4, at: checkpoint, after: 0.5").
std::string killed(std::int64_t rank, const std::string& when);

Started start_trainer(const std::vector<std::string>& arguments, const Launch& launch = {});
/// Stops it and throws after so long: the hang is the finding.
Ended wait_for(const Started& started, int most_s = 120);
Ended train_file(const std::filesystem::path& run_file, const std::filesystem::path& folder, const Launch& launch = {});
Ended train(const RunSpec& run, const std::filesystem::path& folder, const Launch& launch = {});
/// Output folder of the run, trained once for all tests of this process, or a copy of what others have trained
/// (trained_runs.hpp). Throws with what was said when it fails.
std::filesystem::path trained(const RunSpec& run);

/// A line of metrics.jsonl, without times.
struct Step {
  std::int64_t step = 0;
  double loss = 0, aux_loss = 0, z_loss = 0, grad_norm = 0, lr = 0;
  std::vector<double> mtp_losses;
  std::vector<std::int64_t> samples;
  friend bool operator==(const Step&, const Step&) = default;
};
std::vector<Step> steps_of(const std::filesystem::path& folder);
/// Until metrics.jsonl has so many lines. Throws after a minute.
void wait_for_step(const std::filesystem::path& folder, std::size_t step);
/// Highest tensor memory of each step on rank 0, bytes.
std::vector<double> step_peaks_of(const std::filesystem::path& folder);
/// By rank.
std::vector<StepTimeline> timelines_of(const std::filesystem::path& folder);

/// Bits of every training state ("layers.0.router.weight", "state.layers.0.router.weight.exp_avg"), gathered from the
/// shards of one checkpoint.
using State = std::map<std::string, std::vector<std::uint32_t>>;
State state_of(const std::filesystem::path& checkpoint);
std::filesystem::path checkpoint_of(const std::filesystem::path& folder, std::int64_t step);
/// What `latest` points at.
std::filesystem::path latest_checkpoint(const std::filesystem::path& folder);
/// Steps of the checkpoint folders, ascending; -1 for anything that is neither one of them nor `latest`.
std::vector<std::int64_t> checkpoint_steps(const std::filesystem::path& folder);
/// Files at any depth whose names end as temporary ones do.
std::vector<std::string> leftovers(const std::filesystem::path& folder);

}  // namespace wt::test
