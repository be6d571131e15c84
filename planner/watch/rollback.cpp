#include "planner/watch/rollback.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "configs/base/atomic_file.hpp"
#include "configs/base/error.hpp"
#include "configs/files/run.hpp"
#include "trainer/safetensors/manifest.hpp"

namespace wt {
namespace {

std::optional<std::int64_t> step_of(const std::filesystem::path& checkpoint) try {
  return read_manifest(checkpoint).at("step").get<std::int64_t>();
} catch (const std::exception&) {  // the trainer ignores it, too
  return {};
}

std::int64_t count(const BatchRange& range) { return range.last - range.first + 1; }

}  // namespace

RollbackTargets read_rollback_targets(const std::filesystem::path& run_folder) try {
  RollbackTargets out{.skipped = read_run(run_folder / "run.yaml").resilience.skipped};
  for (const auto& folder : checkpoint_folders(run_folder / "checkpoints"))
    if (const auto step = step_of(folder)) out.checkpoints.push_back(*step);
  return out;
} catch (const std::exception& e) {
  return {.missing = e.what()};
}

std::string too_few_checkpoints(const std::filesystem::path& run_folder, const RollbackRule& rule) {
  const auto file = run_folder / "run.yaml";
  if (!std::filesystem::exists(file)) return "";
  RunSpec run;
  try {
    run = read_run(file);
  } catch (const Error&) {  // not written by our trainer
    return "";
  }
  const bool saves = run.save && run.save_interval > 0;
  if (saves && (run.keep_checkpoints < 0 || (run.keep_checkpoints - 1) * run.save_interval >= rule.margin)) return "";
  const std::string kept =
      saves ? fmt::format("{} checkpoints, one every {} steps", run.keep_checkpoints, run.save_interval)
            : "no checkpoints during the run";
  return fmt::format("{}: keeps {}; a rollback of {} steps (rollback.margin) needs more", file.string(), kept,
                     rule.margin);
}

std::optional<Rollback> choose_rollback(const RollbackTargets& targets, std::int64_t bad_step, const RollbackRule& rule,
                                        std::optional<std::int64_t> before) {
  const auto found = std::ranges::find_if(targets.checkpoints, [&](std::int64_t step) {
    return step <= bad_step - rule.margin && (!before || step < *before);
  });
  if (found == targets.checkpoints.end()) return {};
  const std::int64_t first = batch_of(*found + 1, targets.skipped);
  const std::int64_t last = rule.skip ? std::max(first + *rule.skip - 1, batch_of(bad_step, targets.skipped)) : first;
  return Rollback{*found, bad_step, {first, last}};
}

std::string why_no_rollback(const RollbackTargets& targets, std::int64_t bad_step, const RollbackRule& rule,
                            std::optional<std::int64_t> before) {
  if (!targets.missing.empty())
    return "there is no checkpoint to go back to after the loss diverged: " + targets.missing;
  return fmt::format("no checkpoint is kept that is {} steps before step {}, where the loss diverged{}", rule.margin,
                     bad_step, before ? fmt::format(", and older than step {}", *before) : "");
}

std::string to_string(const Rollback& r) {
  const std::string batches = count(r.skipped) == 1 ? fmt::format("batch {}", r.skipped.first)
                                                    : fmt::format("batches {}-{}", r.skipped.first, r.skipped.last);
  return fmt::format("from step {}, {} steps before step {}, leaving out {}", r.step, r.bad_step - r.step, r.bad_step,
                     batches);
}

std::int64_t batch_of(std::int64_t step, const std::vector<BatchRange>& skipped) {
  for (const BatchRange& range : skipped)
    if (range.first <= step) step += count(range);
  return step;
}

std::vector<BatchRange> united(std::vector<BatchRange> ranges, const std::vector<BatchRange>& more) {
  ranges.insert(ranges.end(), more.begin(), more.end());
  std::ranges::sort(ranges, {}, &BatchRange::first);
  std::vector<BatchRange> out;
  for (const BatchRange& range : ranges)
    if (!out.empty() && range.first <= out.back().last + 1)
      out.back().last = std::max(out.back().last, range.last);
    else
      out.push_back(range);
  return out;
}

std::vector<BatchRange> common(const std::vector<BatchRange>& ranges, const std::vector<BatchRange>& others) {
  std::vector<BatchRange> out;
  for (const BatchRange& a : ranges)
    for (const BatchRange& b : others)
      if (const BatchRange both{std::max(a.first, b.first), std::min(a.last, b.last)}; both.first <= both.last)
        out.push_back(both);
  return out;
}

void write_skipping(const std::filesystem::path& run_file, const std::vector<BatchRange>& skipped,
                    const std::filesystem::path& to) {
  RunSpec run = read_run(run_file);
  run.resilience.skipped = united(run.resilience.skipped, skipped);
  run.autoresume = true;
  write_file_atomically(to, run_to_yaml(run));
}

}  // namespace wt
