// windtunnel explain: a job's own log beside the prediction of the same job.
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "configs/base/atomic_file.hpp"
#include "configs/base/error.hpp"
#include "configs/base/json_reader.hpp"
#include "configs/base/quantity.hpp"
#include "configs/base/text.hpp"
#include "configs/files/find.hpp"
#include "configs/files/peak_flops.hpp"
#include "planner/cli/explain/explain_report.hpp"
#include "planner/cli/parts/commands.hpp"
#include "planner/cli/parts/output.hpp"
#include "planner/cli/parts/words.hpp"
#include "planner/recipes/recipe.hpp"
#include "reports/render/progress.hpp"
#include "reports/render/write.hpp"
#include "sim/cost/published_constants.hpp"

namespace wt {
namespace {

struct Options {
  std::string job, log, memory_snapshot, format, model, cluster, stack, output;
  std::vector<std::string> traces, routing;
  std::optional<std::int64_t> gpus;
  bool json = false;
};

/// The stack that runs a trainer's own files.
std::string stack_of(RecipeFormat format) {
  switch (format) {
    case RecipeFormat::torchtitan:
      return "torchtitan";
    case RecipeFormat::megatron_core:
      return "megatron-core";
    case RecipeFormat::megatron_bridge:
      return "megatron-bridge";
    case RecipeFormat::automodel:
      return "automodel";
    case RecipeFormat::llm_foundry:
      return "llm-foundry";
    case RecipeFormat::windtunnel:
      break;
  }
  return "";
}

ImportedRun read_job(const Options& o, const std::filesystem::path& file) {
  RecipeSource source;
  if (!o.format.empty()) source.format = recipe_format_from_string(o.format, "--from");
  source.model = o.model;
  source.gpus = o.gpus.value_or(0);
  source.file = file_beside;
  ImportedRun job =
      import_run(read_file(file, "a run file, or a TOML, YAML or shell file of a trainer"), file.string(), source);
  if (job.format == RecipeFormat::windtunnel) job.run = read_run(file);
  return job;
}

/// As a JSON string, which YAML reads, too; bytes that are not UTF-8 are replaced.
std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

/// For --measured: the run as it was read, and its median step.
std::vector<std::filesystem::path> write_evidence(const ExplainedJob& job, const std::filesystem::path& folder,
                                                  const std::string& cluster) {
  const std::filesystem::path run = folder / "run.yaml", steps = folder / "measured.yaml";
  write_file_atomically(run, run_to_yaml(job.predicted.run) + "\n");
  std::error_code none;
  const bool file = std::filesystem::is_regular_file(cluster, none);
  const std::string peak = job.measured.memory_bytes
                               ? fmt::format("  {}: {:.0f}B\n", job.log.memory_is_reserved ? "reserved" : "allocated",
                                             *job.measured.memory_bytes)
                               : "";
  write_file_atomically(steps, fmt::format("# From {}: the median of {} logged windows, steps {} to {}.\n"
                                           "steps:\n- run: run.yaml\n  cluster: {}\n  step_s: {:.6g}\n{}",
                                           quoted(std::filesystem::path(job.log_file).filename().string()),
                                           job.measured.windows, job.measured.first, job.measured.last,
                                           quoted(file ? std::filesystem::absolute(cluster).string() : cluster),
                                           job.measured.step_s, peak));
  return {run, steps};
}

/// Of whole steps: marked by the profiler, or as long as the log's. A profiler slows a step down. Throws Error{usage}
/// where the trace is of other steps than the log's, or of another number of GPUs: it is another job's.
TracedStep step_of(const GpuTrace& trace, const std::string& file, const SteadySteps& measured, const RunSpec& run) {
  constexpr double kLeast = 0.7, kMost = 1.6;
  if (trace.ranks.value_or(run.layout.world()) != run.layout.world())
    throw_usage("{}: found the trace of a job of {} ranks, and the job has {} GPUs; needs a trace of this job", file,
                *trace.ranks, run.layout.world());
  TracedStep step = traced_step(trace);
  if (step.steps == 0) step.steps = std::llround(step.span_s / measured.step_s);
  const double ratio = step.steps > 0 ? step.span_s / static_cast<double>(step.steps) / measured.step_s : 0;
  if (ratio < kLeast || ratio > kMost)
    throw_usage(
        "{}: found {:.3g} s of kernels in {}, and a step of the log takes {:.3g} s; needs a trace of whole steps "
        "of this job",
        file, step.span_s, counted(step.steps, "step"), measured.step_s);
  return step;
}

/// Of several ranks, the step of the one that computes longest is told in detail: the others wait for it.
void read_traces(ExplainedJob& job, const std::vector<std::string>& files, const RunSpec& run) {
  std::vector<GpuTrace> traces;
  std::vector<TracedStep> steps;
  for (const std::string& file : files) {
    traces.push_back(read_gpu_trace(file));
    steps.push_back(step_of(traces.back(), file, job.measured, run));
  }
  std::size_t told = 0;
  if (traces.size() > 1) {
    job.ranks = traced_ranks(traces, files);
    for (std::size_t t = 1; t < steps.size(); ++t)
      if (steps[t].steps != steps[0].steps)
        throw_usage("{}: found {}, and {} has {}; needs traces of the same steps", files[t],
                    counted(steps[t].steps, "step"), files[0], steps[0].steps);
    told =
        static_cast<std::size_t>(std::ranges::find(traces, job.ranks->slow().rank, &GpuTrace::rank) - traces.begin());
  }
  if (!traces.empty()) job.trace = steps[told], job.traced_rank = traces[told].rank;
}

/// What no GPU can do is of another job, or in other units.
void check_memory(double bytes, const ClusterSpec& cluster, const std::string& file, const char* needs) {
  if (bytes > 1.05 * cluster.memory_bytes)  // GB or GiB
    throw_usage("{}: found {} on a GPU, which has {}; needs {} on {}", file, format_bytes(bytes),
                format_bytes(cluster.memory_bytes), needs, cluster.name);
}

void check_plausible(const SteadySteps& measured, const RunSpec& run, const ClusterSpec& cluster,
                     const std::string& log_file) {
  const auto peak = mean_peak_flops(cluster, run.layout.world());
  const double mfu = peak ? run.flops_per_token() * run.tokens_per_s_per_gpu(measured.step_s) / *peak : 0;
  if (mfu > 1)
    throw_usage("{}: found {:.3g} s a step, which would be an MFU of {:.0f} % on {}; needs the log of this job",
                log_file, measured.step_s, 100 * mfu, cluster.name);
  check_memory(measured.memory_bytes.value_or(0), cluster, log_file, "the log of a job");
}

void explain(const Options& o) {
  const std::filesystem::path file = find_config("runs", o.job);
  const ImportedRun imported = read_job(o, file);
  SimulateQuestion question{.run = imported.run,
                            .run_file = o.job,
                            .cluster = read_cluster(o.cluster),
                            .sources = {.stack = o.stack.empty() ? stack_of(imported.format) : o.stack},
                            .routing = o.routing,
                            .measured = {}};
  if (question.cluster.shared_cores())
    throw_usage(
        "--cluster: found {}, whose ranks share cores; needs a cluster of GPUs. On cores, compare says how far "
        "a prediction is off",
        o.cluster);
  if (!o.output.empty()) make_folder(o.output);
  ExplainedJob job;
  job.log_file = o.log;
  job.assumed = imported.assumed;
  job.log = read_job_log(o.log);
  job.measured = steady_steps(job.log, question.run, o.log);
  check_plausible(job.measured, question.run, question.cluster, o.log);
  read_traces(job, o.traces, question.run);
  if (!o.memory_snapshot.empty()) {
    job.snapshot = read_memory_snapshot(o.memory_snapshot);
    check_memory(job.snapshot->reserved_bytes, question.cluster, o.memory_snapshot, "a snapshot of a job");
  }
  Progress bar("simulating the job");
  job.predicted = bar.during([&] { return simulated_run(question); });
  job.standing = standing_of(job.measured.step_s / job.predicted.replay.step_s, *job.predicted.features,
                             PublishedConstants::measured_runs());
  job.changes = bar.during([&] { return best_changes(question, job.predicted, job.standing.spread_within); });
  bar.finish();
  Report report = explain_report(job);
  report.provenance =
      provenance({{"job", o.job}, {"log", o.log}, {"cluster", o.cluster}, {"times", job.predicted.basis}});
  if (!o.output.empty()) {
    for (const auto& written : write_report(report, o.output, "report"))
      fmt::print(stderr, "wrote {}\n", written.string());
    for (const auto& written : write_evidence(job, o.output, o.cluster))
      fmt::print(stderr, "wrote {}\n", written.string());
  }
  put_report(report, o.json);
}

}  // namespace

void add_explain(CLI::App& app) {
  const Command command(app, "explain",
                        "Compare a job's log with the prediction of the same job\n"
                        "Example: windtunnel explain job.toml --log stdout.log --cluster hgx-h100 -o out/explain");
  const auto o = command.runs(explain);
  command.option("JOB", o->job, "Run file, or the file of another trainer as import-run reads it").required();
  command
      .option("--log", o->log,
              "Standard output of the job, or its metrics: JSON lines, CSV, TensorBoard's event files, run-*.wandb or "
              "trainer_state.json")
      .required();
  command
      .option("--trace", o->traces,
              "Whole steps by PyTorch's profiler (JSON, also gzip) or Nsight Systems (SQLite); repeatable: one a rank")
      .one_a_mention();
  command.option("--memory-snapshot", o->memory_snapshot,
                 "What torch.cuda.memory._dump_snapshot wrote on one rank; read without running it");
  command.option("--cluster", o->cluster, "Cluster: a preset of configs/clusters, or a file").required();
  command.option("--stack", o->stack, "Stack that runs it (configs/stacks); default: that of the file's format");
  command
      .option("--routing", o->routing,
              "Which experts tokens go to: a recording, histograms (repeatable), or 'balanced'; default: trained")
      .one_a_mention();
  command.option("--from", o->format,
                 fmt::format("What JOB is, if it does not look like it: {}", fmt::join(recipe_format_names(), ", ")));
  command.option("--model", o->model, "Model, where JOB names none: of configs/models, a repository, or a file");
  command.option("--gpus", o->gpus, "GPUs, where JOB does not say how many").between(std::int64_t{1}, INT64_MAX);
  command.output(o->output, Output::folder,
                 "Folder for the report, and for measured.yaml, which --measured of other commands reads");
  command.flag("--json", o->json, "Print one JSON document");
}

}  // namespace wt
