#include "trainer/executor/recorder.hpp"

#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "configs/base/atomic_file.hpp"
#include "configs/base/error.hpp"
#include "configs/base/quantity.hpp"
#include "configs/base/standard_error.hpp"
#include "configs/base/statistics.hpp"
#include "configs/files/profile.hpp"
#include "reports/render/chrome_trace.hpp"
#include "sim/program/routing/routing.hpp"
#include "sim/program/timeline_json.hpp"
#include "trainer/communication/numbers_of_ranks.hpp"
#include "trainer/data/sample_order.hpp"
#include "trainer/device/memory_counter.hpp"
#include "trainer/executor/run_profile.hpp"
#include "trainer/pch.hpp"
#include "trainer/run_folder/files.hpp"
#include "trainer/run_folder/run_metrics.hpp"
#include "trainer/run_folder/step_line.hpp"

namespace wt {
namespace {

using nlohmann::json;

double median_or_0(const std::vector<double>& values) { return values.empty() ? 0 : median(values); }

double median_of(const std::vector<SaveTimes>& saves, double SaveTimes::*time) {
  std::vector<double> values;
  for (const SaveTimes& save : saves) values.push_back(save.*time);
  return median_or_0(values);
}

/// Columns of each rank's numbers in the summary.
enum RankColumn : std::size_t {
  kStep_s,
  kExposed_s,
  kPeakBytes,
  kCompute_s,
  kSaveBlocking_s,
  kSave_s,
  kSaveBytes,
  kLocalBlocking_s,
  kLocal_s,
  kProcessCpu_s,
  kRankColumns  ///< number of columns
};

/// Microbatches of the first rank, which has the most.
std::int64_t most_microbatches(const RunSpec& run) {
  const Layout& l = run.layout;
  return Microbatches::split(share_of_batch(run.global_batch, 0, l.replicate, l.shard / l.context).count, l.microbatch)
      .count;
}

}  // namespace

Recorder::Recorder(const RunSpec& run, std::filesystem::path folder, std::int64_t rank, std::int64_t resumed_step,
                   std::optional<double> peak_flops, std::string last_line)
    : run_(run),
      folder_(std::move(folder)),
      rank_(rank),
      resumed_step_(resumed_step),
      peak_flops_(peak_flops),
      last_line_(std::move(last_line)) {
  if (rank_ != 0) return;
  files_.emplace(folder_, resumed_step, last_line_);
  std::error_code absent;
  if (resumed_step < run.steps) std::filesystem::remove(folder_ / kSummaryFile, absent);
}

void Recorder::started(int generation, double connected_unix_s, double loaded_unix_s,
                       const std::optional<LoadedCheckpoint>& loaded) {
  if (rank_ != 0) return;
  StartLine line{generation, connected_unix_s, loaded_unix_s, resumed_step_};
  if (loaded) {
    line.level = to_string(loaded->level);
    loaded_ = {{"step", loaded->step}, {"level", line.level}, {"seconds", loaded_unix_s - connected_unix_s}};
  }
  files_->start(line);
}

void Recorder::step(const StepResult& r, double learning_rate, const std::vector<std::int64_t>& samples,
                    const json& skipped, const ExampleStep* examples) {
  if (files_) files_->done(r.timeline.step);
  if (++steps_ == kWarmUpSteps + 1) timelines_.clear();
  timelines_.push_back(r.timeline);
  if (timelines_.size() > kKeptTimelines) timelines_.pop_front();
  if (steps_ <= kWarmUpSteps) measured_from_ = Clocks::now(), machine_from_s_ = machine_cpu_s();
  routed_.emplace_back(r.timeline.step, StepResult{});
  routed_.back().second.routing = r.routing;
  if (routed_.size() > static_cast<std::size_t>(kRecordedSteps)) routed_.pop_front();
  const double tokens_per_s = static_cast<double>(run_.tokens_per_step()) / r.timeline.step_s;
  StepFigures figures{.step = r.timeline.step, .loss = r.loss, .aux_loss = r.aux_loss, .z_loss = r.z_loss};
  figures.grad_norm = r.gradient_norm, figures.learning_rate = learning_rate;
  figures.step_s = r.timeline.step_s, figures.tokens_per_s = tokens_per_s;
  figures.exposed_communication_s = r.timeline.exposed_s;
  figures.peak_tensor_bytes = r.timeline.peak_bytes, figures.resident_bytes = resident_bytes();
  figures.unix_s = clock_s(CLOCK_REALTIME);
  figures.expert_imbalance = expert_imbalance(run_, r.routing);
  if (peak_flops_) figures.mfu = model_flops_utilisation(run_, r.timeline.step_s, *peak_flops_);
  json line = to_json(figures);
  line["samples"] = samples;
  if (!skipped.empty()) line["skipped"] = skipped;
  if (examples) line["targets"] = examples->targets;
  if (examples && run_.dataset.packs()) line["sequences"] = examples->sequences;
  if (!r.repeated.empty()) line["repeated_for_ranks"] = r.repeated;
  if (!r.mtp_losses.empty()) line["mtp_losses"] = r.mtp_losses;
  last_line_ = line.dump();
  if (rank_ != 0) return;
  files_->step(last_line_);
  if (listener_) listener_(line);
  const std::string shown = fmt::format(
      "step {:>4}/{}  loss {:.4f}{}  grad {:.3f}  {:>7.0f} tok/s  step {}  exposed {:2.0f} %  peak {}", r.timeline.step,
      run_.steps, r.loss, r.mtp_losses.empty() ? "" : fmt::format("  mtp {:.4f}", fmt::join(r.mtp_losses, " ")),
      r.gradient_norm, tokens_per_s, format_seconds(r.timeline.step_s), 100 * r.timeline.exposed_s / r.timeline.step_s,
      format_bytes(r.timeline.peak_bytes));
  if (isatty(STDERR_FILENO)) print_error("{}\n", shown);
}

void Recorder::diverged(std::int64_t step) {
  if (files_) files_->diverged(step);
}

void Recorder::evaluation(const EvaluationLine& r) {
  if (rank_ != 0) return;
  const json line = to_json(r);
  files_->evaluation(line);
  if (listener_) listener_(line);
  if (isatty(STDERR_FILENO))
    print_error("step {:>4}  {}: loss {:.4f}, perplexity {:.2f} on {} samples in {}\n", r.step, r.label, r.loss,
                std::exp(r.loss), r.samples, format_seconds(r.seconds));
}

void Recorder::checkpoint(std::int64_t step, const SaveTimes& times) {
  checkpoints_.push_back(times);
  if (rank_ != 0) return;
  files_->save({step, times.blocking_s, times.total_s, times.bytes});
  if (isatty(STDERR_FILENO))
    print_error("step {:>4}  checkpoint {}: training stood still {}, valid after {}\n", step, format_bytes(times.bytes),
                format_seconds(times.blocking_s), format_seconds(times.total_s));
}

void Recorder::write_routing(Communicators& communicators) {
  const std::int64_t steps = static_cast<std::int64_t>(routed_.size()), world = run_.layout.world();
  const std::int64_t mbs = most_microbatches(run_), layers = run_.model.blocks(), experts = run_.model.experts;
  at::Tensor counts = at::zeros({steps, mbs, layers, world, experts}, at::kLong);
  std::int64_t* at = counts.data_ptr<std::int64_t>();
  for (std::int64_t s = 0; s < steps; ++s)
    for (std::int64_t m = 0; m < std::ssize(routed_[static_cast<std::size_t>(s)].second.routing); ++m)
      for (std::int64_t l = 0; l < layers; ++l) {
        const auto& row = routed_[static_cast<std::size_t>(s)]
                              .second.routing[static_cast<std::size_t>(m)][static_cast<std::size_t>(l)];
        std::ranges::copy(row, at + (((s * mbs + m) * layers + l) * world + rank_) * experts);
      }
  if (world > 1) communicators.all_reduce(Axis::world, counts)->wait();
  if (rank_ != 0) return;
  std::string out = "step,microbatch,layer,rank";
  for (std::int64_t e = 0; e < experts; ++e) out += fmt::format(",e{}", e);
  out += "\n";
  for (std::int64_t s = 0; s < steps; ++s)
    for (std::int64_t m = 0; m < mbs; ++m)
      for (std::int64_t l = 0; l < layers; ++l)
        for (std::int64_t r = 0; r < world; ++r) {
          out += fmt::format("{},{},{},{}", routed_[static_cast<std::size_t>(s)].first, m, l, r);
          for (std::int64_t e = 0; e < experts; ++e) out += fmt::format(",{}", *at++);
          out += "\n";
        }
  write_file_atomically(folder_ / kRoutingFile, out);
}

void Recorder::write_timelines(Communicators& communicators, const StepTimeline& own) {
  SharedStore& store = communicators.store();
  store.set(fmt::format("timeline/{}", rank_), to_json(own).dump());
  if (rank_ != 0) {
    store.get("timelines/written");  // rank 0 or the agent hosts the store: leave only after it was read
    return;
  }
  TraceGroup group{"measured", {}};
  json all = json::array();
  for (std::int64_t r = 0; r < run_.layout.world(); ++r) {
    all.push_back(json::parse(store.get(fmt::format("timeline/{}", r))));
    group.steps.push_back(timeline_from_json(all.back(), fmt::format("timeline of rank {}", r)));
  }
  write_file_atomically(folder_ / kTimelineFile, all.dump());
  write_file_atomically(folder_ / kTraceFile, chrome_trace({group}));
  store.set("timelines/written", "1");
}

void Recorder::finish(const Executor& executor, Communicators& communicators) {
  if (timelines_.empty()) return;
  const Clocks now = Clocks::now();
  const double machine_s = machine_cpu_s() - machine_from_s_, wall_s = now.wall_s - measured_from_.wall_s;
  write_routing(communicators);
  std::vector<double> step_s, exposed_s, compute_s;
  double peak = 0;
  for (std::size_t i = 0; i < timelines_.size(); ++i) {
    const StepTimeline& t = timelines_[i];
    step_s.push_back(t.step_s), exposed_s.push_back(t.exposed_s);
    double compute = 0;
    for (const OpRecord& op : t.ops) compute += op.thread_cpu_s;
    compute_s.push_back(compute);
    peak = std::max(peak, t.peak_bytes);
  }
  std::vector<double> own(kRankColumns);
  own[kStep_s] = median_or_0(step_s);
  own[kExposed_s] = median_or_0(exposed_s);
  own[kPeakBytes] = peak;
  own[kCompute_s] = median_or_0(compute_s);
  own[kSaveBlocking_s] = median_of(checkpoints_, &SaveTimes::blocking_s);
  own[kSave_s] = median_of(checkpoints_, &SaveTimes::total_s);
  own[kLocalBlocking_s] = median_of(local_copies_, &SaveTimes::blocking_s);
  own[kLocal_s] = median_of(local_copies_, &SaveTimes::total_s);
  own[kSaveBytes] = checkpoints_.empty() ? 0.0 : checkpoints_.back().bytes;
  own[kProcessCpu_s] = now.process_cpu_s - measured_from_.process_cpu_s;
  const at::Tensor all = numbers_of_ranks(communicators, run_.layout.world(), own);
  // The step with rank 0's median time represents the run; every rank shows the same step.
  std::size_t typical = 0;
  for (std::size_t i = 1; i < timelines_.size(); ++i)
    if (std::abs(timelines_[i].step_s - median_or_0(step_s)) <
        std::abs(timelines_[typical].step_s - median_or_0(step_s)))
      typical = i;
  SharedStore& store = communicators.store();
  if (rank_ == 0) store.set("typical", std::to_string(typical));
  write_timelines(communicators, timelines_[std::stoul(store.get("typical"))]);
  if (rank_ != 0) return;
  write_profile(run_profile(run_, executor, {timelines_.begin(), timelines_.end()}), folder_ / kProfileFile);
  json ranks = json::array();
  double own_cpu_s = 0;
  for (std::int64_t r = 0; r < run_.layout.world(); ++r) {
    const double* row = all.data_ptr<double>() + all.size(1) * r;
    own_cpu_s += row[kProcessCpu_s];
    ranks.push_back({{"rank", r},
                     {"step_s", row[kStep_s]},
                     {"exposed_communication_s", row[kExposed_s]},
                     {"peak_tensor_bytes", row[kPeakBytes]},
                     {"compute_cpu_s", row[kCompute_s]},
                     {"checkpoint_blocking_s", row[kSaveBlocking_s]},
                     {"checkpoint_total_s", row[kSave_s]},
                     {"checkpoint_bytes", row[kSaveBytes]}});
    if (!local_copies_.empty())
      ranks.back().update({{"local_copy_blocking_s", row[kLocalBlocking_s]}, {"local_copy_total_s", row[kLocal_s]}});
  }
  json summary = {{"schema", "windtunnel.run_summary/1"},
                  {"run", run_.name},
                  {"layout", run_.layout.name()},
                  {"device", to_string(run_.device)},
                  {"attention", executor.attention_backend()},
                  {"reserved_bytes", reserved_tensor_bytes(executor.device())},
                  {"steps", steps_},
                  {"measured_steps", timelines_.size()},
                  {"tokens_per_step", run_.tokens_per_step()},
                  {"cores_used_by_others", std::max(0.0, machine_s - own_cpu_s) / std::max(wall_s, 1e-9)},
                  {"median_step_s", median_or_0(step_s)},
                  {"tokens_per_s", static_cast<double>(run_.tokens_per_step()) / median_or_0(step_s)},
                  {"ranks", ranks}};
  if (!loaded_.is_null()) summary["loaded"] = loaded_;
  write_file_atomically(folder_ / kSummaryFile, summary.dump(1) + "\n");
}

}  // namespace wt
