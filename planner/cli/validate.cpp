// windtunnel validate: predict published or own measurements without having seen them, and say how far off that was.
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "configs/spec/find.hpp"
#include "planner/cli/command.hpp"
#include "planner/cli/output.hpp"
#include "planner/cli/validate_report.hpp"
#include "reports/render.hpp"
#include "sim/validate/collectives.hpp"
#include "sim/validate/kernels.hpp"
#include "sim/validate/routing.hpp"

namespace wt {
namespace {

struct Options {
  std::string file;
  bool json = false;
};

std::filesystem::path measurements(const std::string& name) { return configs_folder() / "measurements" / name; }

Validation validate_kernels(const std::string& file) {
  return {.subject = "kernels",
          .file = file,
          .method = "Every row is predicted by constants and neighbours fitted without its own (GPU, n, k).",
          .baseline = "MFU is constant",
          .rows = judge_kernels(read_kernel_rows(file), read_kernel_rows(measurements("kernel_times.csv")))};
}

Validation validate_collectives(const std::string& file) {
  const std::vector<CollectiveRow> rows = read_collective_rows(file);
  const std::vector<CollectiveRow> reference = read_collective_rows(measurements("collectives.csv"));
  return {.subject = "collectives",
          .file = file,
          .method = "Every row is predicted by constants fitted without its own (source, GPU, nodes, GPUs, fabric).",
          .baseline = "bandwidth is constant",
          .rows = judge_collectives(rows, reference),
          .whole_sources = judge_collectives(rows, reference, LeftOut::source)};
}

Validation validate_routing(const std::string& file) {
  const std::vector<PlacedStep> rows = read_placed_steps(file);
  const std::vector<PlacedStep> reference = read_placed_steps(measurements("routing_step_times.csv"));
  const RoutedContext context = read_routed_context(file, measurements(""));
  const KernelPrices prices(read_kernel_rows(measurements("kernel_times.csv")),
                            read_collective_rows(measurements("collectives.csv")));
  Validation v{.subject = "routing",
               .file = file,
               .method =
                   "Every row is predicted from rank loads and published kernel times, with one constant of the "
                   "stack found without its own (model, data set).",
               .baseline = "loads are balanced",
               .rows = judge_routing(rows, reference, context, prices),
               .whole_sources = judge_routing(rows, reference, context, prices, RoutingLeftOut::model),
               .whole = "model"};
  v.ratios = ratios(v.rows);
  return v;
}

void add_subject(CLI::App& validate, const std::string& name, const std::string& help,
                 Validation (*judge)(const std::string&)) {
  CLI::App* command = validate.add_subcommand(name, help);
  auto o = std::make_shared<Options>();
  command->add_option("FILE", o->file, "Measurements (CSV, columns as in configs/measurements)")->required();
  command->add_flag("--json", o->json, "Print one JSON document: a row a measurement, and a summary");
  command->callback([o, judge] {
    const Validation validation = judge(o->file);
    if (o->json)
      put_document(json_text(validation_json(validation)), "");
    else
      put_report(validation_report(validation), false);
  });
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
}

}  // namespace wt
