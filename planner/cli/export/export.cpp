// windtunnel export: writes a plan or a run in another framework's format.
#include <fmt/ranges.h>

#include "configs/base/error.hpp"
#include "configs/base/json_members.hpp"
#include "configs/files/find.hpp"
#include "configs/files/model_words.hpp"
#include "configs/files/study.hpp"
#include "planner/cli/parts/commands.hpp"
#include "planner/cli/parts/words.hpp"
#include "planner/recipes/recipe.hpp"

namespace wt {

WT_TO_JSON(Recipe, version, file_name, text, todo, not_expressed, next_step)

namespace {

struct Options {
  std::string plan, target, output;
  bool json = false;
};

/// A folder written by windtunnel plan -o contains the run file.
std::filesystem::path run_file_of(const std::string& plan) {
  if (!std::filesystem::is_directory(plan)) return find_config("runs", plan);
  std::filesystem::path file = std::filesystem::path(plan) / "plan.yaml";
  if (!std::filesystem::exists(file))
    throw_usage("{}: found a folder without plan.yaml, needs what windtunnel plan -o wrote, or a run file", plan);
  return file;
}

/// GPUs of a host. A larger node of ours is a rack behind one NVLink switch, whose hosts have four (GB200 NVL72).
std::int64_t gpus_of_a_host(const ClusterSpec& cluster) {
  constexpr std::int64_t kOfATray = 4;
  return cluster.gpus_per_node > kUsualGpusPerNode ? kOfATray : cluster.gpus_per_node;
}

/// Of the planned cluster, whose study lies beside the plan; otherwise the usual number.
std::int64_t gpus_per_node(const std::string& plan) {
  const std::filesystem::path study = std::filesystem::path(plan) / "study.yaml";
  if (!std::filesystem::exists(study)) return kUsualGpusPerNode;
  try {
    return gpus_of_a_host(read_study(study.string()).cluster);
  } catch (const Error& error) {  // a cluster's file that is not here any more
    fmt::print(stderr, "nodes are taken as {} GPUs each: {}\n", kUsualGpusPerNode, error.what());
    return kUsualGpusPerNode;
  }
}

void export_plan(const Options& o) {
  const RecipeFormat target = recipe_format_from_string(o.target, "--to");
  const RunSpec run = read_run(run_file_of(o.plan));
  const Recipe recipe = export_run(run, target, gpus_per_node(o.plan));
  fmt::print(stderr, "{}", model_lines(run.model));
  if (o.json) {
    nlohmann::json document = recipe;
    document["schema"] = "windtunnel.export/1";
    document["target"] = o.target;
    return put_document(document.dump(2), o.output);
  }
  put_document(recipe.text, o.output);
  for (const std::string& what : recipe.todo) fmt::print(stderr, "to do: {}\n", what);
  for (const std::string& what : recipe.not_expressed)
    fmt::print(stderr, "not expressed in {}: {}\n", recipe.version, what);
  fmt::print(stderr, "next: {}\n", recipe.next_step);
}

}  // namespace

void add_export(CLI::App& app) {
  const Command command(app, "export",
                        "Write a plan or a run in the format of the framework that is to train it\n"
                        "Example: windtunnel export out/plan --to torchtitan -o job.toml");
  const auto o = command.runs(export_plan);
  command.option("PLAN", o->plan, "Run file (plan.yaml), folder of windtunnel plan -o, or a preset of configs/runs")
      .required();
  command.option("--to", o->target, fmt::format("One of {}", fmt::join(recipe_format_names(), ", "))).required();
  command.output(o->output, Output::file, "File to write instead of standard output");
  command.flag("--json", o->json, "Print one JSON document: the text and what it does not say");
}

}  // namespace wt
