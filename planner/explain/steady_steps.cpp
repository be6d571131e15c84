#include "planner/explain/steady_steps.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "configs/base/error.hpp"
#include "configs/base/number.hpp"
#include "configs/base/statistics.hpp"

namespace wt {
namespace {

constexpr std::int64_t kWarmUp = 2;  ///< windows after a start
constexpr std::size_t kFewest = 3;   ///< windows
constexpr std::size_t kEnoughToDrift = 20;
constexpr double kSlow = 1.5;
/// Trainers count full attention or half, embeddings or not, padded vocabularies or not.
constexpr double kFormulas = 1.25;

std::vector<const LoggedStep*> after_warm_up(const JobLog& log) {
  std::vector<const LoggedStep*> out;
  std::int64_t since = 0;
  for (const LoggedStep& step : log.steps) {
    if (std::ranges::binary_search(log.starts, step.step)) since = 0;
    if (since++ >= kWarmUp && step.timed()) out.push_back(&step);
  }
  return out;
}

/// Windows of a batch ramp have other batches; at least one must have the job's.
std::vector<const LoggedStep*> of_the_batch(const std::vector<const LoggedStep*>& windows, const RunSpec& run,
                                            const std::string& log_file) {
  std::vector<const LoggedStep*> out;
  for (const LoggedStep* step : windows)
    if (step->global_batch.value_or(run.global_batch) == run.global_batch) out.push_back(step);
  if (out.empty() && !windows.empty())
    throw_usage("{}: step {}: found a global batch of {}, and the job's is {}; needs the log of this job", log_file,
                windows.back()->step, *windows.back()->global_batch, run.global_batch);
  return out;
}

/// The log's clock and its tokens a second must tell the same step: they do not where the job has another batch, or
/// other GPUs, than the one that wrote the log. Saves and evaluations are in the clock alone.
void check_clock(const std::vector<const LoggedStep*>& windows, double step_s, const std::string& log_file) {
  constexpr double kLeast = 0.8, kMost = 1.6;
  std::vector<double> clock_s;
  for (std::size_t i = 1; i < windows.size(); ++i)
    if (!windows[i]->step_s && windows[i]->clock_s && windows[i - 1]->clock_s &&
        windows[i]->step > windows[i - 1]->step)
      clock_s.push_back((*windows[i]->clock_s - *windows[i - 1]->clock_s) /
                        as_double(windows[i]->step - windows[i - 1]->step));
  if (clock_s.size() < kFewest) return;
  const double ratio = median(clock_s) / step_s;
  if (ratio < kLeast || ratio > kMost)
    throw_usage(
        "{}: found {:.3g} s a step by the log's clock, and {:.3g} s by its rates with the job's batch and GPUs; needs "
        "the log of this job: another batch or another number of GPUs gives such figures",
        log_file, median(clock_s), step_s);
}

/// Between half and full attention, as trainers count it.
void check_flops(double counted, const RunSpec& run, const std::string& log_file) {
  const double half = run.flops_per_token();
  const double attention = half - 6.0 * as_double(run.model.product_weights());
  const double least = half / kFormulas, most = (half + std::max(0.0, attention)) * kFormulas;
  if (run.lora || (counted >= least && counted <= most)) return;
  throw_usage(
      "{}: found {:.3g} GFLOP a token by the log's own throughput, and the job's model has {:.3g}; needs the log of "
      "this job: another model or sequence length gives such a figure",
      log_file, counted / 1e9, half / 1e9);
}

/// Median tokens of a step, where the trainer counts them. More than half of the batch may be padding or left out of
/// the loss; more than the batch is another job.
std::optional<double> tokens_per_step(const std::vector<const LoggedStep*>& windows, const RunSpec& run,
                                      const std::string& log_file) {
  constexpr double kLeast = 0.4, kMost = 1.02;
  std::vector<double> counted;
  for (std::size_t i = 1; i < windows.size(); ++i)
    if (windows[i]->tokens && windows[i - 1]->tokens && windows[i]->step > windows[i - 1]->step)
      counted.push_back((*windows[i]->tokens - *windows[i - 1]->tokens) /
                        as_double(windows[i]->step - windows[i - 1]->step));
  if (counted.empty()) return std::nullopt;
  const double share = median(counted) / as_double(run.tokens_per_step());
  if (share < kLeast || share > kMost)
    throw_usage("{}: found {:.0f} tokens a step, and the job has {}; needs the log of this job", log_file,
                median(counted), run.tokens_per_step());
  return median(counted);
}

}  // namespace

std::optional<double> step_seconds(const LoggedStep& step, const RunSpec& run) {
  const double tokens = as_double(run.tokens_per_step());
  if (step.step_s) return step.step_s;
  if (step.tokens_per_s_per_gpu) return tokens / (*step.tokens_per_s_per_gpu * as_double(run.layout.world()));
  if (step.tokens_per_s) return tokens / *step.tokens_per_s;
  return std::nullopt;
}

SteadySteps steady_steps(const JobLog& log, const RunSpec& run, const std::string& log_file) {
  const auto windows = of_the_batch(after_warm_up(log), run, log_file);
  if (windows.size() < kFewest)
    throw_usage("{}: found {} logged steps with a time after the warm-up of {} lines, needs {} at least", log_file,
                windows.size(), kWarmUp, kFewest);
  SteadySteps out{.first = windows.front()->step, .last = windows.back()->step};
  out.windows = std::ssize(windows);
  std::vector<double> seconds, flops, mfu;
  for (const LoggedStep* step : windows) {
    seconds.push_back(step_seconds(*step, run).value());
    if (step->flops_per_gpu)
      flops.push_back(*step->flops_per_gpu * seconds.back() * as_double(run.layout.world()) /
                      as_double(run.tokens_per_step()));
    if (step->mfu) mfu.push_back(*step->mfu);
    if (step->memory_bytes) out.memory_bytes = std::max(out.memory_bytes.value_or(0), *step->memory_bytes);
  }
  out.step_s = median(seconds);
  constexpr double kShortest_s = 1e-6, kLongest_s = 1e6;  // as read_measured_steps
  if (!(out.step_s >= kShortest_s && out.step_s <= kLongest_s))
    throw_usage("{}: found steps of {:.3g} s, needs {:g} to {:g} s", log_file, out.step_s, kShortest_s, kLongest_s);
  check_clock(windows, out.step_s, log_file);
  out.low_s = quantile(seconds, 0.1), out.high_s = quantile(seconds, 0.9);
  if (!flops.empty()) out.flops_per_token = median(flops), check_flops(*out.flops_per_token, run, log_file);
  if (!mfu.empty()) out.mfu = median(mfu);
  out.tokens_per_step = tokens_per_step(windows, run, log_file);
  if (const std::size_t quarter = seconds.size() / 4; seconds.size() >= kEnoughToDrift)
    out.drift = median({seconds.end() - static_cast<std::ptrdiff_t>(quarter), seconds.end()}) /
                    median({seconds.begin(), seconds.begin() + static_cast<std::ptrdiff_t>(quarter)}) -
                1;
  out.slow = std::ranges::count_if(seconds, [&](double s) { return s > kSlow * out.step_s; });
  return out;
}

}  // namespace wt
