#include "planner/cli/explain/explain_report.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "bench/formats/kineto.hpp"
#include "configs/base/json_members.hpp"
#include "configs/base/number.hpp"
#include "configs/base/quantity.hpp"
#include "configs/base/text.hpp"
#include "configs/files/model_words.hpp"
#include "configs/files/peak_flops.hpp"
#include "planner/cli/parts/cells.hpp"
#include "planner/cli/parts/op_table.hpp"
#include "planner/cli/parts/own_sheet.hpp"
#include "planner/cli/parts/relatives.hpp"
#include "planner/cli/parts/throughput.hpp"

namespace wt {

WT_TO_JSON(Change, what, step_s, gain, faster, runs_out)
WT_TO_JSON(SteadySteps, first, last, windows, step_s, low_s, high_s, drift, slow, memory_bytes, flops_per_token, mfu,
           tokens_per_step)
WT_TO_JSON(Standing, runs, faster_than, spread_within)
WT_TO_JSON(MemorySnapshot, reserved_bytes, allocated_bytes, events, from_start, failures)
WT_TO_JSON(RankTime, rank, compute_s, exposed_s, wait_s, caused)
WT_TO_JSON(TracedRanks, ranks, collectives, slowest, behind_s, others_wait_s)
WT_TO_JSON(TracedStep, steps, span_s, compute_s, exposed_s, copies_s, idle_s, collectives_s, class_s, exposed_by_group)

namespace {

constexpr std::size_t kShownChanges = 3;
constexpr double kDrift = 0.03;  ///< from here on a job that slows down is told

/// Predicted over measured step, minus 1: how much faster the job is than predicted.
double ahead(const ExplainedJob& job) { return job.predicted.replay.step_s / job.measured.step_s - 1; }

bool inside(const ExplainedJob& job) {
  return job.measured.step_s >= job.predicted.replay.low_s && job.measured.step_s <= job.predicted.replay.high_s;
}

std::string answer(const ExplainedJob& job) {
  const RunSpec& run = job.predicted.run;
  const double off = ahead(job), rate = run.tokens_per_s_per_gpu(job.measured.step_s);
  std::string out =
      fmt::format("{} takes {} a step, {} tokens/s/GPU: {:.0f} % {} than predicted, {} the 80 % interval.", run.name,
                  format_seconds(job.measured.step_s), format_number(std::round(rate)), 100 * std::abs(off),
                  off < 0 ? "slower" : "faster", inside(job) ? "inside" : "outside");
  if (job.standing.runs > 0)
    out += fmt::format(" Of {} published runs of its kind, {:.0f} % were further behind their own prediction.",
                       job.standing.runs, 100 * job.standing.faster_than);
  return out;
}

KeyValues speed(const ExplainedJob& job) {
  const SimulatedRun& p = job.predicted;
  const SteadySteps& m = job.measured;
  const RunSpec& run = p.run;
  KeyValues out{.title = "The job"};
  const auto add = [&](const char* name, Cell cell) { out.entries.emplace_back(name, std::move(cell)); };
  const double rate = run.tokens_per_s_per_gpu(m.step_s);
  add("parameters", parameters_text(run.model));
  if (const std::string what = approximations_text(run.model); !what.empty()) add("approximated", what);
  add("GPUs and layout", fmt::format("{} {}, {}", run.layout.world(), p.cluster.gpu_name, run.layout.name()));
  add("step, measured",
      Cell(m.step_s,
           fmt::format("{}, the median of {} logged lines; 10 % are below {}, 10 % above {} (steps {} to {})",
                       format_seconds(m.step_s), m.windows, format_seconds(m.low_s), format_seconds(m.high_s), m.first,
                       m.last),
           Evidence::measured));
  add("step, predicted", Cell(p.replay.step_s,
                              fmt::format("{} ({} to {}, 80 % interval)", format_seconds(p.replay.step_s),
                                          format_seconds(p.replay.low_s), format_seconds(p.replay.high_s)),
                              Evidence::derived));
  add("tokens/s/GPU", Cell(rate,
                           fmt::format("{}; predicted {}", format_number(std::round(rate)),
                                       format_number(std::round(run.tokens_per_s_per_gpu(p.replay.step_s)))),
                           Evidence::measured));
  if (const double all = as_double(run.tokens_per_step()); m.tokens_per_step && *m.tokens_per_step < 0.98 * all)
    add("tokens a step", Cell(*m.tokens_per_step,
                              fmt::format("{} of the batch's {}, as the trainer counts them: the others are padding "
                                          "or were never there; rates and MFU count the batch",
                                          format_number(std::round(*m.tokens_per_step)), format_number(all)),
                              Evidence::measured));
  if (const auto peak = mean_peak_flops(p.cluster, run.layout.world()))
    add("MFU", mfu_cell({.flops_per_token = run.flops_per_token(), .tokens_per_s_per_gpu = rate, .peak_flops = *peak}));
  if (m.mfu)
    add("MFU as the log says",
        Cell(*m.mfu,
             fmt::format("{:.1f} %, by {}'s own formula{}{}", 100 * *m.mfu, to_string(job.log.trainer),
                         m.flops_per_token ? fmt::format(": {:.1f} GFLOP a token", *m.flops_per_token / 1e9) : "",
                         job.log.peak_flops ? fmt::format(" over {:.0f} TFLOP/s", *job.log.peak_flops / 1e12) : ""),
             Evidence::measured));
  if (std::abs(m.drift) >= kDrift)
    add("drift", Cell(m.drift, fmt::format("the last quarter is {:.0f} % {} than the first", 100 * std::abs(m.drift),
                                           m.drift > 0 ? "slower" : "faster")));
  if (m.slow > 0)
    add("slow lines", Cell(as_double(m.slow), fmt::format("{} took more than 1.5 times the median", m.slow)));
  return out;
}

KeyValues memory(const ExplainedJob& job) {
  const MemoryUse use = fullest_memory(job.predicted);
  KeyValues out{.title = "Memory of a GPU"};
  const auto forecast = [&](const char* name, const MemoryForecast& of) {
    out.entries.emplace_back(name, Cell(of.bytes,
                                        fmt::format("{} ({} to {}, 80 % interval)", format_bytes(of.bytes),
                                                    format_bytes(of.low), format_bytes(of.high)),
                                        Evidence::derived));
  };
  if (job.measured.memory_bytes)
    out.entries.emplace_back(
        job.log.memory_is_reserved ? "reserved, measured" : "allocated, measured",
        Cell(*job.measured.memory_bytes, format_bytes(*job.measured.memory_bytes), Evidence::measured));
  if (job.snapshot) {
    const MemorySnapshot& s = *job.snapshot;
    const std::string when = s.events == 0  ? "at the moment of the snapshot"
                             : s.from_start ? fmt::format("the highest in {} recorded events", s.events)
                                            : fmt::format("the highest in the last {} recorded events", s.events);
    const auto add = [&](const char* name, double bytes) {
      out.entries.emplace_back(name, Cell(bytes, fmt::format("{}, {}", format_bytes(bytes), when), Evidence::measured));
    };
    add("reserved, snapshot", s.reserved_bytes), add("allocated, snapshot", s.allocated_bytes);
    if (s.failures > 0)
      out.entries.emplace_back(
          "out of memory",
          Cell(as_double(s.failures), fmt::format("{} found no memory", counted(s.failures, "allocation")),
               Evidence::measured));
  }
  forecast("reserved, predicted", use.reserved);
  forecast("allocated, predicted", use.allocated);
  forecast("process, predicted", use.process);
  return out;
}

Table changes_table(const ExplainedJob& job) {
  Table out{.title = "Changes with the shortest predicted step",
            .columns = {"change", numeric("predicted step", "s"), numeric("saves", "%"), numeric("faster with", "%"),
                        numeric("out of memory", "%")}};
  for (std::size_t i = 0; i < std::min(kShownChanges, job.changes.size()); ++i) {
    const Change& c = job.changes[i];
    out.rows.push_back({c.what, Cell(c.step_s), percent(c.gain), percent(c.faster), percent(c.runs_out)});
  }
  out.note = fmt::format(
      "Each alone, with the same batch and GPUs. Saves: of the predicted step. Faster with: the probability that it is "
      "faster at all, from the errors of predictions within one source ({:.0f} % of a step); near 50 % nobody knows.",
      100 * job.standing.spread_within);
  return out;
}

/// The parts of one traced step beside the predicted ones.
Table trace_table(const ExplainedJob& job) {
  const TracedStep& t = *job.trace;
  const ReplayResult& r = job.predicted.replay;
  const double steps = as_double(t.steps);
  Table out{.title = fmt::format("{} step, by its trace",
                                 job.traced_rank ? fmt::format("Rank {}'s", *job.traced_rank) : "One rank's"),
            .columns = {"part", numeric("measured", "ms"), numeric("predicted", "ms"), "what it is"}};
  const double other = t.compute_s + t.copies_s + t.idle_s;
  out.rows = {{"computation", milliseconds(t.compute_s / steps), "-", "some kernel computes"},
              {"copies alone", milliseconds(t.copies_s / steps), "-", "between host and GPU, or on the GPU"},
              {"idle", milliseconds(t.idle_s / steps), "-", "nothing runs: the host, or the input"},
              {"these three", milliseconds(other / steps), milliseconds(r.step_s - r.exposed_s),
               "predicted computation has what the host costs in it"},
              {"exposed communication", milliseconds(t.exposed_s / steps), milliseconds(r.exposed_s),
               fmt::format("a collective runs and nothing computes; {:.0f} % of the collectives' time is hidden",
                           100 * t.hidden())},
              {"all", milliseconds(t.span_s / steps), milliseconds(r.step_s),
               fmt::format("{} in the trace", counted(t.steps, "step"))}};
  out.note = job.ranks
                 ? "Of the traced ranks, this one computes longest."
                 : "A collective's time has the waiting for slower ranks in it, which the trace of one rank cannot "
                   "tell.";
  return out;
}

Table ranks_table(const ExplainedJob& job) {
  const double steps = as_double(job.trace->steps);
  Table out{.title = "Traced ranks",
            .columns = {"rank", numeric("computation", "ms"), numeric("exposed communication", "ms"),
                        numeric("of it waiting", "ms"), numeric("causes", "%")}};
  for (const RankTime& r : job.ranks->ranks)
    out.rows.push_back({std::to_string(r.rank), milliseconds(r.compute_s / steps), milliseconds(r.exposed_s / steps),
                        milliseconds(r.wait_s / steps), percent(r.caused)});
  out.note = fmt::format(
      "A step. Waiting: beyond the shortest of the same collective, where nothing computes. Causes: the share of all "
      "waiting in collectives to which this rank came last, of {} that the ranks have in common.",
      job.ranks->collectives);
  return out;
}

/// Whether a slow rank makes the difference between measured and predicted.
std::string straggler_sentence(const ExplainedJob& job) {
  constexpr double kMatters = 0.02;  // of a step
  const TracedRanks& r = *job.ranks;
  const double steps = as_double(job.trace->steps), least_s = kMatters * job.measured.step_s,
               wait_s = r.others_wait_s / steps, behind_s = r.behind_s / steps;
  const auto most = std::ranges::max(r.ranks, {}, &RankTime::wait_s).wait_s / steps;
  if (most < least_s)
    return fmt::format("No slow rank among the {} traced: each waits {} a step or less for the others.", r.ranks.size(),
                       format_seconds(most));
  const RankTime& late = std::ranges::max(r.ranks, {}, &RankTime::caused);
  if (behind_s >= least_s && r.slow().wait_s < r.others_wait_s / 2) {
    const double gap_s = job.measured.step_s - job.predicted.replay.step_s;
    return fmt::format(
        "Rank {} is slow: it computes {} a step longer than the median of the other traced ranks, and they wait {} a "
        "step. {}",
        r.slow().rank, format_seconds(behind_s), format_seconds(wait_s),
        gap_s > 0 ? fmt::format("The step is {} longer than predicted: the slow rank makes {:.0f} % of that.",
                                format_seconds(gap_s), 100 * std::min(1.0, wait_s / gap_s))
                  : "The step is not longer than predicted.");
  }
  if (constexpr double kMostly = 0.6; late.caused >= kMostly)
    return fmt::format(
        "Rank {} computes hardly longer than the others, and {:.0f} % of their waiting is for it, {} a step: its host, "
        "its input or its links hold it up.",
        late.rank, 100 * late.caused, format_seconds(wait_s));
  return fmt::format(
      "Ranks wait up to {} a step for one another, now for this one and now for that: uneven experts, hosts or input, "
      "not one slow rank.",
      format_seconds(most));
}

Table kernels_table(const TracedStep& t) {
  Table out{.title = "Its kernels", .columns = {"class", numeric("busy", "ms a step"), numeric("share", "%")}};
  double all = 0;
  for (const double s : t.class_s) all += s;
  for (std::size_t i = 0; i < t.class_s.size(); ++i)
    if (t.class_s[i] > 0)
      out.rows.push_back({to_string(static_cast<KernelClass>(i)), milliseconds(t.class_s[i] / as_double(t.steps)),
                          percent(t.class_s[i] / all)});
  return out;
}

Table groups_table(const TracedStep& t) {
  Table out{.title = "Exposed communication by group",
            .columns = {"group, collective", numeric("exposed", "ms a step")}};
  for (const auto& [group, seconds] : t.exposed_by_group)
    out.rows.push_back({group, milliseconds(seconds / as_double(t.steps))});
  return out;
}

/// Which of the two parts of the traced step is further above its prediction.
std::string largest_difference(const ExplainedJob& job) {
  const TracedStep& t = *job.trace;
  const ReplayResult& r = job.predicted.replay;
  const double steps = as_double(t.steps), exposed = t.exposed_s / steps - r.exposed_s,
               other = (t.compute_s + t.copies_s + t.idle_s) / steps - (r.step_s - r.exposed_s);
  if (std::max(exposed, other) <= 0) return "No part of the traced step is longer than predicted.";
  return fmt::format("The part of the traced step that is further above its prediction: {}, by {} a step.",
                     exposed > other ? "exposed communication" : "computation, copies and an idle GPU",
                     format_seconds(std::max(exposed, other)));
}

std::vector<std::string> limits(const ExplainedJob& job) {
  if (job.trace) {
    std::vector<std::string> out{largest_difference(job)};
    if (job.ranks) out.push_back(straggler_sentence(job));
    return out;
  }
  std::vector<std::string> out{
      "A log of steps says how far measured and predicted steps are apart. It does not say whether computation, "
      "exposed "
      "communication, the host, the input or a slow rank makes the difference: that takes a trace."};
  if (!job.measured.memory_bytes && !job.snapshot) out.emplace_back("The log's steps say nothing of memory.");
  return out;
}

std::vector<std::string> next(const ExplainedJob& job) {
  std::vector<std::string> out;
  if (!job.trace)
    out.emplace_back(
        "Trace two or three steps of one rank with torch.profiler, and give the file with --trace: it says how much is "
        "computation, exposed communication and an idle GPU.");
  else if (!job.ranks)
    out.emplace_back(
        "Trace the same steps on other ranks, and give their files with --trace, too: they say whether ranks wait for "
        "a slow one.");
  if (!job.measured.memory_bytes && !job.snapshot)
    out.emplace_back("Log the peak of reserved memory: it says the allocator's share.");
  out.push_back(
      "Use these steps as evidence: -o writes measured.yaml, and simulate --measured predicts other layouts of this "
      "job "
      "from it.");
  return out;
}

}  // namespace

Report explain_report(const ExplainedJob& job) {
  const ReplayResult& r = job.predicted.replay;
  Report report{.title = fmt::format("{} as {} logged it", job.predicted.run.name, to_string(job.log.trainer))};
  report.answer = answer(job) + beyond_sentence(*job.predicted.features);
  report.answer_range =
      fmt::format("predicted: {} to {} (80 % interval)", format_seconds(r.low_s), format_seconds(r.high_s));
  report.status = job.measured.step_s > r.high_s ? Status::warn : Status::good;
  std::vector<std::string> notes = job.log.notes;
  if (const std::string own = own_sheet_sentence(job.predicted.cluster); !own.empty()) notes.push_back(own);
  for (const std::string& what : job.assumed) notes.push_back("Assumed: " + what + ".");
  report.sections.push_back({"job", "Measured and predicted", notes, {speed(job), memory(job)}});
  report.sections.push_back({"normal", "Is this normal?", {}, {relatives_table(*job.predicted.features)}});
  report.sections.push_back({"where", "Where the step goes", limits(job), {}});
  if (job.ranks) report.sections.back().items.emplace_back(ranks_table(job));
  if (job.trace)
    for (Table& table : std::vector{trace_table(job), kernels_table(*job.trace), groups_table(*job.trace)})
      report.sections.back().items.emplace_back(std::move(table));
  report.sections.back().items.emplace_back(op_table(r));
  Section changes{"changes", "What to change", {}, {}};
  if (job.changes.empty())
    changes.paragraphs.emplace_back(
        "None of the changes that were tried saves 1 % of the predicted step and fits: microbatch, recompute, "
        "replicas, "
        "and degrees of parallelism, each doubled and halved.");
  else
    changes.items.emplace_back(changes_table(job));
  report.sections.push_back(std::move(changes));
  report.sections.push_back({"next", "What to measure next", next(job), {}});
  report.payload = {{"schema", "windtunnel.explanation/1"},
                    {"trainer", to_string(job.log.trainer)},
                    {"measured", job.measured},
                    {"predicted_step_s", {{"value", r.step_s}, {"low", r.low_s}, {"high", r.high_s}}},
                    {"tokens_per_s_per_gpu", job.predicted.run.tokens_per_s_per_gpu(job.measured.step_s)},
                    {"standing", job.standing},
                    {"trace", job.trace ? nlohmann::json(*job.trace) : nlohmann::json()},
                    {"memory_snapshot", job.snapshot ? nlohmann::json(*job.snapshot) : nlohmann::json()},
                    {"traced_ranks", job.ranks ? nlohmann::json(*job.ranks) : nlohmann::json()},
                    {"changes", job.changes},
                    {"notes", notes}};
  return report;
}

}  // namespace wt
