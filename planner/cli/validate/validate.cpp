// windtunnel validate: predicts published or own measurements that were left out of the fit, and reports the errors.
#include <algorithm>
#include <filesystem>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "configs/base/error.hpp"
#include "configs/base/text.hpp"
#include "configs/files/find.hpp"
#include "configs/files/model.hpp"
#include "configs/files/stack.hpp"
#include "planner/cli/parts/commands.hpp"
#include "planner/cli/parts/output.hpp"
#include "planner/cli/parts/words.hpp"
#include "planner/cli/validate/validate_plans.hpp"
#include "planner/cli/validate/validate_report.hpp"
#include "reports/render/progress.hpp"
#include "reports/render/render.hpp"
#include "sim/measurements/csv.hpp"
#include "sim/published/run_files.hpp"
#include "sim/validate/judge_anchored.hpp"
#include "sim/validate/judge_collectives.hpp"
#include "sim/validate/judge_energy.hpp"
#include "sim/validate/judge_kernels.hpp"
#include "sim/validate/judge_memory.hpp"
#include "sim/validate/judge_new_gpu.hpp"
#include "sim/validate/judge_routing.hpp"
#include "sim/validate/judge_runs.hpp"

namespace wt {
namespace {

struct Options {
  std::string file, stack, write_runs, write_errors;
  bool json = false, fit_on_file = false, rows = false;
  std::int64_t anchors = 0;
  std::string as_data_sheet;
  std::uint64_t seed = 0;
};

std::filesystem::path measurements(const std::string& name) { return configs_folder() / "measurements" / name; }

Validation validate_kernels(const Options& o) {
  const std::vector<KernelPoint> points = usable_points(PublishedTimes::get().tables().kernels);
  const PublishedKernelFit fit(points);
  std::vector<KernelRow> rows = read_kernel_rows(o.file);
  const auto apart = std::ranges::stable_partition(rows, [](const KernelRow& row) { return !row.apart; });
  const std::vector<KernelRow> more_timed(apart.begin(), apart.end());
  rows.erase(apart.begin(), apart.end());
  std::vector<KernelRow> grouped;
  std::ranges::copy_if(rows, std::back_inserter(grouped),
                       [](const KernelRow& row) { return row.op == "grouped_gemm"; });
  Validation v{.subject = "kernels",
               .file = o.file,
               .method =
                   "Every row is predicted by constants and neighbours fitted without its own (GPU, n, k), without its "
                   "(n, k) where it is a grouped product, or without its origin where it is attention.",
               .baseline = "MFU is constant",
               .rows = judge_kernels(rows, fit, points)};
  const auto add = [&](const std::string& key, const std::string& title, const std::vector<KernelRow>& of,
                       GroupedOut out) {
    if (!of.empty()) v.apart.push_back({key, title, judge_kernels(of, fit, points, out)});
  };
  add("grouped_origins_left_out", "Grouped products with everything from a row's origin left out", grouped,
      GroupedOut::origin);
  add("grouped_libraries_left_out", "Grouped products with everything of a row's library left out", grouped,
      GroupedOut::library);
  add("more_timed", "Rows that time more than the kernel, judged by their origin left out", more_timed,
      GroupedOut::origin);
  return v;
}

Validation validate_row_exchanges(const Options& o) {
  const std::vector<RowExchangeRow> rows = read_row_exchanges(o.file);
  std::vector<RowExchangeRow> reference = read_row_exchanges(measurements("row_exchanges.csv"));
  if (o.fit_on_file) reference.insert(reference.end(), rows.begin(), rows.end());
  return {.subject = "dispatches",
          .file = o.file,
          .method = "Every row is predicted without the rows of the same source, GPU, nodes, library and kernels.",
          .baseline = "bandwidth is constant",
          .rows = judge_row_exchanges(rows, reference),
          .whole_sources = judge_row_exchanges(rows, reference, LeftOut::origin)};
}

Validation validate_collectives(const Options& o) {
  const std::string& file = o.file;
  if (const auto header = read_csv_header(file); std::ranges::find(header, "row_bytes") != header.end())
    return validate_row_exchanges(o);
  const std::vector<CollectiveRow> rows = read_collective_rows(file);
  std::vector<CollectiveRow> reference = read_collective_rows(measurements("collectives.csv"));
  if (o.fit_on_file) reference.insert(reference.end(), rows.begin(), rows.end());
  return {.subject = "collectives",
          .file = file,
          .method =
              "Every row is predicted as plans predict it, without the rows of the same source, GPU, nodes, GPUs and "
              "fabric.",
          .baseline = "bandwidth is constant",
          .rows = judge_collectives(rows, reference),
          .whole_sources = judge_collectives(rows, reference, LeftOut::origin)};
}

std::vector<ModelSpec> known_models() {
  std::vector<ModelSpec> out;
  for (const std::string& name : preset_names("models")) out.push_back(read_model(name));
  return out;
}

Validation validate_routing(const Options& o) {
  const std::vector<PlacedStep> rows = read_placed_steps(o.file);
  RoutedContext context = read_routed_context(o.file, measurements(""));
  context.models = known_models();
  const PublishedTimes& published = PublishedTimes::get();
  Progress bar("simulating steps", static_cast<std::int64_t>(rows.size()));
  Validation v{
      .subject = "routing",
      .file = o.file,
      .method =
          "Every row is simulated as a user would, with the rows that its ranks had. Nothing that its origin published "
          "had a part in the times.",
      .baseline = "loads are balanced",
      .rows = judge_routing(rows, context, published,
                            [&](std::size_t done, std::size_t) { bar.update(static_cast<std::int64_t>(done)); }),
      .unit = kSeconds};
  v.ratios = ratios(v.rows);
  return v;
}

/// Writes one folder per row, named by its line.
void write_runs(const std::vector<RunRow>& rows, const Options& o) {
  for (const RunRow& row : rows) try {
      const StackSpec stack =
          o.stack.empty() ? stack_of(row.framework, PublishedTimes::get().stacks()) : read_stack(o.stack);
      RunFiles files = run_files(row, stack);
      if (std::filesystem::exists(o.stack)) files.stack_option = std::filesystem::absolute(o.stack).string();
      write_run_files(files, std::filesystem::path(o.write_runs) / fmt::format("line-{}", row.line));
    } catch (const Error& e) {
      if (e.code() != Code::usage) throw;
    }
}

std::vector<MeasuredRun> step_errors(const std::vector<RunRow>& rows, const std::vector<Judged>& judged,
                                     const PublishedTimes& published) {
  std::vector<MeasuredRun> out;
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (const auto& predicted = judged[i].forecast.value) {
      const RunFiles files = run_files(rows[i], stack_of(rows[i].framework, published.stacks()));
      const double tokens = static_cast<double>(rows[i].tokens()) / static_cast<double>(rows[i].gpus);
      out.push_back({rows[i].model.name, judged[i].origin, features_of(files.run, files.cluster, files.stack),
                     tokens / rows[i].step_s, tokens / *predicted});
    }
  return out;
}

/// `judge`: the rows with and without others known. Nothing else that the origin published had a part.
Validation anchored(const Options& o, const std::string& subject, const std::string& file, const std::string& baseline,
                    ValueUnit unit, const std::function<AnchoredRows(const AnchorsAsked&)>& judge) {
  if (!o.stack.empty())
    throw_usage("--stack: found {} beside --anchors, needs the rows' own stacks; drop one", o.stack);
  Progress bar("simulating runs");
  AnchoredRows judged =
      judge({o.anchors, o.seed, [&](std::size_t done, std::size_t all) {
               bar.update("simulating runs", static_cast<std::int64_t>(done), static_cast<std::int64_t>(all));
             }});
  return {.subject = subject,
          .file = file,
          .method = fmt::format(
              "Every row is simulated as a user would who has measured {} of the same origin, model and GPU. Nothing "
              "else that the origin published had a part in it. Rows without so many others are left out.",
              counted(o.anchors, "other run")),
          .baseline = baseline,
          .rows = std::move(judged.with),
          .unit = std::move(unit),
          .apart = {{"without_anchors", "The same rows with no run of their origin known", std::move(judged.without)}},
          .every_row = o.rows};
}

Validation validate_as_new_gpu(const std::vector<RunRow>& rows, const Options& o) {
  const std::size_t at = o.as_data_sheet.find('=');
  if (at == std::string::npos)
    throw_usage("--as-data-sheet: found '{}', needs a GPU and one that it is like, as in B200=H200", o.as_data_sheet);
  const NewGpu asked{o.as_data_sheet.substr(0, at), o.as_data_sheet.substr(at + 1)};
  if (!o.stack.empty() || o.anchors > 0 || o.fit_on_file || !o.write_errors.empty() || !o.write_runs.empty())
    throw_usage("--as-data-sheet: found beside --stack, --anchors, --fit-on-file or --write-...; drop them");
  Progress bar("simulating runs", static_cast<std::int64_t>(rows.size()));
  return {.subject = "runs",
          .file = o.file.empty() ? "all tables of training runs" : o.file,
          .method = fmt::format(
              "Rows on {} are simulated as if its data sheet stood in the cluster's file, like {}. Nothing that was "
              "measured on a GPU of its generation had a part in the times, and nothing of the row's origin.",
              asked.gpu, asked.like),
          .baseline = "MFU is constant",
          .rows = judge_as_new_gpu(rows, PublishedTimes::get().tables(), asked,
                                   [&](std::size_t done, std::size_t) { bar.update(static_cast<std::int64_t>(done)); }),
          .unit = kSeconds,
          .every_row = o.rows};
}

Validation validate_runs(const Options& o) {
  const std::vector<RunRow> rows = o.file.empty() ? published_training_runs(measurements("")) : read_run_rows(o.file);
  if (!o.as_data_sheet.empty()) return validate_as_new_gpu(rows, o);
  std::optional<PublishedTimes> with_file;
  if (o.fit_on_file) {
    std::vector<RunRow> fitted = rows;
    const std::vector<RunRow>& known = PublishedTimes::get().tables().runs;
    fitted.insert(fitted.end(), known.begin(), known.end());
    with_file.emplace(PublishedTimes::get(), std::move(fitted));
  }
  const PublishedTimes& published = with_file ? *with_file : PublishedTimes::get();
  if (!o.write_runs.empty()) write_runs(rows, o);
  if (o.anchors > 0)
    return anchored(o, "runs", o.file.empty() ? "all tables of training runs" : o.file, "MFU is that of the known runs",
                    kSeconds, [&](const AnchorsAsked& asked) { return judge_anchored_runs(rows, published, asked); });
  const auto judged = [&](LeftOutOfSteps left_out) {
    Progress bar("simulating runs", static_cast<std::int64_t>(rows.size()));
    const RunsAsked asked{o.stack, left_out,
                          [&](std::size_t done, std::size_t) { bar.update(static_cast<std::int64_t>(done)); }};
    return judge_runs(rows, published, asked);
  };
  Validation v{
      .subject = "runs",
      .file = o.file.empty() ? "all tables of training runs" : o.file,
      .method =
          "Every row is simulated as a user would. Nothing that its origin published, step or benchmark, had a "
          "part in the times.",
      .baseline = "MFU is constant",
      .rows = judged(LeftOutOfSteps::origin),
      .unit = kSeconds,
      .whole_sources = judged(LeftOutOfSteps::stack),
      .whole = "stack",
      .files = true,
      .every_row = o.rows};
  v.steps = published.stack_fit().model();
  if (!o.write_errors.empty()) write_step_errors(step_errors(rows, v.rows, published), o.write_errors);
  return v;
}

Validation validate_outside(const Options& o) {
  if (!o.stack.empty())
    throw_usage(
        "--stack: found {} for a table of memory outside of the allocator, whose rows say their framework; drop it",
        o.stack);
  return {.subject = "memory",
          .file = o.file,
          .method =
              "What a process takes outside of its framework's allocator. Each row is predicted from the messages of "
              "other origins.",
          .baseline = "one figure for all",
          .rows = judge_outside(read_outside_rows(o.file), PublishedTimes::get().tables().outside,
                                PublishedTimes::get().stacks()),
          .unit = kBytes};
}

Validation validate_memory(const Options& o) {
  const std::vector<std::string> columns = read_csv_header(o.file);
  if (std::ranges::find(columns, "in_use_gib") != columns.end()) return validate_outside(o);
  const PublishedTimes& published = PublishedTimes::get();
  const std::vector<RunRow> rows = read_run_rows(o.file);
  if (o.anchors > 0)
    return anchored(o, "memory", o.file, "bytes a parameter are those of the known runs", kBytes,
                    [&](const AnchorsAsked& asked) {
                      return judge_anchored_memory(rows, published.tables().memory_runs, published.stacks(), asked);
                    });
  const auto judged = [&](LeftOut left_out) {
    return judge_memory(rows, published.tables().memory_runs, published.stacks(), o.stack, left_out);
  };
  return {
      .subject = "memory",
      .file = o.file,
      .method =
          "Every row is the replay of its step program's memory, with a workspace and fragmentation fitted without its "
          "own framework and width of the model, or without its (tp, pp) where the source measured one model alone.",
      .baseline = "bytes a parameter are constant",
      .rows = judged(LeftOut::group),
      .unit = kBytes,
      .whole_sources = judged(LeftOut::origin),
      .outcomes = judge_outcomes(rows, published.tables().memory_runs, published.tables().outside, published.stacks(),
                                 o.stack)};
}

Validation validate_energy(const Options& o) {
  const std::string file = o.file.empty() ? measurements("energy.csv").string() : o.file;
  const std::vector<EnergyRow> rows = read_energy_rows(file);
  Progress bar("simulating runs", static_cast<std::int64_t>(rows.size()));
  JudgedEnergy judged = judge_energy(
      rows, PublishedTimes::get(), [&](std::size_t done, std::size_t) { bar.update(static_cast<std::int64_t>(done)); });
  Validation v{
      .subject = "energy",
      .file = o.file.empty() ? "configs/measurements/energy.csv" : o.file,
      .method =
          "Watts of a GPU, at the input of its node or of the GPU alone. Every row is simulated as a user would, "
          "without anything that its origin published. Power by state comes from the GPU's data sheet. Switches "
          "between nodes, storage and the cooling of the room are in neither figure.",
      .baseline = "the data sheet's power of the GPU",
      .rows = std::move(judged.gpu_W),
      .unit = kWatts};
  if (!judged.token_J.empty()) v.apart.push_back({"joules_of_a_token", "Joules of a token", std::move(judged.token_J)});
  return v;
}

struct Subject {
  Command command;
  std::shared_ptr<Options> options;
};

Subject add_subject(const Command& validate, const std::string& name, const std::string& help,
                    Validation (*judge)(const Options&), const char* without_file = nullptr) {
  const Command command = validate.subcommand(name, help);
  auto o = std::make_shared<Options>();
  const std::string measured = "Measurements (CSV, columns as in configs/measurements)";
  const Word file =
      command.option("FILE", o->file, without_file ? fmt::format("{}; none = {}", measured, without_file) : measured);
  if (!without_file) file.required();
  command.flag("--json", o->json, "Print one JSON document: a row a measurement, and a summary");
  command.runs([o, judge] {
    const Validation validation = judge(*o);
    if (o->json)
      put_document(json_text(validation_json(validation)), "");
    else
      put_report(validation_report(validation), false);
  });
  return {command, o};
}

void add_fit_on_file(const Subject& subject) {
  subject.command.flag("--fit-on-file", subject.options->fit_on_file,
                       "Let FILE's own rows speak for one another, too, each group without itself");
}

void add_stack(const Subject& subject) {
  subject.command.option("--stack", subject.options->stack,
                         "The stack of all rows (configs/stacks), in place of what their framework says");
}

void add_anchors(const Subject& subject) {
  subject.command
      .option("--anchors", subject.options->anchors,
              "Known runs of a row's origin, model and GPU, as if they were a user's own; 0 = none")
      .between(std::int64_t{0}, std::int64_t{100});
  subject.command.option("--seed", subject.options->seed, "Draws the known runs");
}

}  // namespace

void add_validate(CLI::App& app) {
  const Command command(app, "validate",
                        "Predict measurements without having seen them, and say how far off that was\n"
                        "Example: windtunnel validate kernels configs/measurements/kernel_times.csv");
  command.require_subcommand();
  add_subject(command, "kernels",
              "Times of matrix products and memory-bound kernels\n"
              "Example: windtunnel validate kernels configs/measurements/kernel_times.csv",
              validate_kernels);
  add_fit_on_file(add_subject(command, "collectives",
                              "Times of collectives, as nccl-tests prints them, or of dispatches and combines\n"
                              "Example: windtunnel validate collectives configs/measurements/collectives.csv",
                              validate_collectives));
  add_subject(command, "routing",
              "Steps of one MoE model under several placements of its experts, from the loads of their ranks\n"
              "Example: windtunnel validate routing configs/measurements/routing_step_times.csv",
              validate_routing);
  const Subject runs = add_subject(command, "runs",
                                   "Step times of training runs\n"
                                   "Example: windtunnel validate runs configs/measurements/training_runs.csv",
                                   validate_runs, "all training runs there");
  add_stack(runs);
  add_fit_on_file(runs);
  runs.command.flag("--rows", runs.options->rows, "Print every row, and how faithfully it could be said");
  add_anchors(runs);
  runs.command.option("--as-data-sheet", runs.options->as_data_sheet,
                      "GPU=LIKE, as in B200=H200: predict the runs on GPU as if nobody had measured its generation");
  runs.command.option(
      "--write-errors", runs.options->write_errors,
      "File for how far off each row was: configs/measurements/left_out_steps.csv, from which intervals come");
  runs.command.option("--write-runs", runs.options->write_runs,
                      "Folder for the run file, cluster and command of every row that can be written");
  const Subject memory = add_subject(command, "memory",
                                     "Memory of training steps on the GPU with most of it\n"
                                     "Example: windtunnel validate memory configs/measurements/training_runs.csv",
                                     validate_memory);
  add_stack(memory);
  add_anchors(memory);
  add_subject(command, "energy",
              "Power of a GPU at its node while a run trains, and joules of a token\n"
              "Example: windtunnel validate energy",
              validate_energy, "energy.csv there");
  add_validate_plans(command);
}

}  // namespace wt
