// windtunnel validate: predict published or own measurements without having seen them, and say how far off that was.
#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "configs/spec/find.hpp"
#include "configs/spec/model.hpp"
#include "configs/spec/stack.hpp"
#include "planner/cli/command.hpp"
#include "planner/cli/output.hpp"
#include "reports/build/validate_report.hpp"
#include "reports/render/render.hpp"
#include "sim/validate/collectives.hpp"
#include "sim/validate/kernels.hpp"
#include "sim/validate/memory.hpp"
#include "sim/validate/replayed_run.hpp"
#include "sim/validate/routing.hpp"
#include "sim/validate/runs.hpp"

namespace wt {
namespace {

struct Options {
  std::string file, stack;
  bool json = false, replay = false;
};

std::filesystem::path measurements(const std::string& name) { return configs_folder() / "measurements" / name; }

/// Published times, and of published rates those of kernels that the times do not have: rates of single products, many
/// of them the best of a search, stay out of the fits.
std::vector<KernelRow> kernel_reference() {
  std::vector<KernelRow> rows = read_kernel_rows(measurements("kernel_times.csv"));
  for (KernelRow& row : read_kernel_rows(measurements("kernel_rates.csv")))
    if (row.op != "gemm") rows.push_back(std::move(row));
  return rows;
}

Validation validate_kernels(const Options& o) {
  const std::string& file = o.file;
  return {.subject = "kernels",
          .file = file,
          .method =
              "Every row is predicted by constants and neighbours fitted without its own (GPU, n, k), or without "
              "its source where it is attention.",
          .baseline = "MFU is constant",
          .rows = judge_kernels(read_kernel_rows(file), kernel_reference())};
}

Validation validate_collectives(const Options& o) {
  const std::string& file = o.file;
  const std::vector<CollectiveRow> rows = read_collective_rows(file);
  const std::vector<CollectiveRow> reference = read_collective_rows(measurements("collectives.csv"));
  return {.subject = "collectives",
          .file = file,
          .method = "Every row is predicted by constants fitted without its own (source, GPU, nodes, GPUs, fabric).",
          .baseline = "bandwidth is constant",
          .rows = judge_collectives(rows, reference),
          .whole_sources = judge_collectives(rows, reference, LeftOut::source)};
}

std::vector<ModelSpec> known_models() {
  std::vector<ModelSpec> out;
  for (const std::string& name : preset_names("models")) out.push_back(read_model(name));
  return out;
}

Validation validate_routing(const Options& o) {
  const std::vector<PlacedStep> rows = read_placed_steps(o.file);
  const std::vector<PlacedStep> reference = read_placed_steps(measurements("routing_step_times.csv"));
  RoutedContext context = read_routed_context(o.file, measurements(""));
  context.models = known_models();
  const GpuTimes gpus(read_kernel_rows(measurements("kernel_times.csv")));
  const RunFabric fabric(read_collective_rows(measurements("collectives.csv")));
  Validation v{.subject = "routing",
               .file = o.file,
               .method =
                   "Every row is predicted from rank loads and published kernel times, with one constant of the "
                   "stack found without its own (model, data set).",
               .baseline = "loads are balanced",
               .rows = judge_routing(rows, reference, context, gpus, fabric),
               .unit = kSeconds,
               .whole_sources = judge_routing(rows, reference, context, gpus, fabric, RoutingLeftOut::model),
               .whole = "model"};
  v.ratios = ratios(v.rows);
  return v;
}

Validation validate_runs(const Options& o) {
  const RunReference reference = run_reference(measurements(""), read_stacks());
  const std::vector<RunRow> rows = read_run_rows(o.file);
  Validation v{.subject = "runs",
               .file = o.file,
               .method = "Every row is predicted by constants fitted without its own source and model.",
               .baseline = "MFU is constant",
               .rows = judge_runs(rows, reference, o.stack),
               .unit = kSeconds,
               .whole_sources = judge_runs(rows, reference, o.stack, RunsLeftOut::stack),
               .whole = "stack"};
  v.steps = reference_model(reference, GpuTimes(reference.kernels), RunFabric(reference.collectives));
  if (o.replay) {
    const ReplayedRuns replayed(reference);
    const auto timer = [&](const RunRow& row, const StepTraits& traits, const StepConstants& constants) {
      return replayed.seconds(row, traits, constants);
    };
    v.replayed = judge_runs_by(timer, rows, reference, o.stack);
  }
  return v;
}

Validation validate_memory(const Options& o) {
  return {.subject = "memory",
          .file = o.file,
          .method =
              "Every row is predicted from its shapes and two constants fitted without its own (source, model), or "
              "without its (tp, pp) where one model alone has such figures.",
          .baseline = "bytes a parameter are constant",
          .rows = judge_memory(read_run_rows(o.file), read_run_rows(measurements("training_runs.csv")), read_stacks(),
                               o.stack),
          .unit = kBytes};
}

std::shared_ptr<Options> add_subject(CLI::App& validate, const std::string& name, const std::string& help,
                                     Validation (*judge)(const Options&)) {
  CLI::App* command = validate.add_subcommand(name, help);
  auto o = std::make_shared<Options>();
  command->add_option("FILE", o->file, "Measurements (CSV, columns as in configs/measurements)")->required();
  command->add_flag("--json", o->json, "Print one JSON document: a row a measurement, and a summary");
  command->callback([o, judge] {
    const Validation validation = judge(*o);
    if (o->json)
      put_document(json_text(validation_json(validation)), "");
    else
      put_report(validation_report(validation), false);
  });
  return o;
}

void add_stack(CLI::App& validate, const std::string& subject, const std::shared_ptr<Options>& o) {
  validate.get_subcommand(subject)->add_option(
      "--stack", o->stack, "The stack of all rows (configs/stacks), in place of what their framework says");
}

}  // namespace

void add_validate(CLI::App& app) {
  CLI::App* command = app.add_subcommand("validate",
                                         "Predict measurements without having seen them, and say how far off that was\n"
                                         "Example: windtunnel validate kernels configs/measurements/kernel_times.csv");
  command->require_subcommand(1);
  add_subject(*command, "kernels",
              "Times of matrix products and memory-bound kernels\n"
              "Example: windtunnel validate kernels configs/measurements/kernel_times.csv",
              validate_kernels);
  add_subject(*command, "collectives",
              "Times of collectives, as nccl-tests prints them\n"
              "Example: windtunnel validate collectives configs/measurements/collectives.csv",
              validate_collectives);
  add_subject(*command, "routing",
              "Steps of one MoE model under several placements of its experts, from the loads of their ranks\n"
              "Example: windtunnel validate routing configs/measurements/routing_step_times.csv",
              validate_routing);
  const auto runs = add_subject(*command, "runs",
                                "Step times of training runs\n"
                                "Example: windtunnel validate runs configs/measurements/training_runs.csv",
                                validate_runs);
  add_stack(*command, "runs", runs);
  command->get_subcommand("runs")->add_flag(
      "--replay", runs->replay, "Predict each row on the simulator, too: its step program replayed op by op");
  const auto memory = add_subject(*command, "memory",
                                  "Memory of training steps on the GPU with most of it\n"
                                  "Example: windtunnel validate memory configs/measurements/training_runs.csv",
                                  validate_memory);
  add_stack(*command, "memory", memory);
}

}  // namespace wt
